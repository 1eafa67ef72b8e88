-- Where a session began, and when it ended for good. Both are of this device alone.

-- checkout is the root of the worktree in which the session began, or the folder outside
-- a repository. closed_at is null while the session may go on: ended_at is also the end
-- of a turn. Sessions that ended before this schema have neither.
ALTER TABLE sessions ADD COLUMN checkout TEXT;
ALTER TABLE sessions ADD COLUMN closed_at INTEGER;
