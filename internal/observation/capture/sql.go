package capture

// Statements that change rows.
const (
	insertRow = `INSERT INTO observation_rows
(timestamp, session_key, project_key, prompt_id, obs_type, source_event, tool_name, content,
 file_path, path_key, metadata, tool_use_id, part, agent_id, harness_prompt_id, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	insertPrompt = `INSERT INTO prompt_rows
(session_key, timestamp, source, harness_prompt_id, agent_id, source_uuid)
VALUES (?, ?, ?, ?, ?, ?)`

	// The first source of a call wins. The other source fills columns that are empty.
	fillRow = `UPDATE observation_rows
SET prompt_id = ifnull(prompt_id, ?), agent_id = ifnull(agent_id, ?), harness_prompt_id = ifnull(harness_prompt_id, ?)
WHERE id = ? AND (prompt_id IS NULL AND ? IS NOT NULL OR agent_id IS NULL AND ? IS NOT NULL
    OR harness_prompt_id IS NULL AND ? IS NOT NULL)`

	fillPrompt = `UPDATE prompt_rows
SET harness_prompt_id = ifnull(harness_prompt_id, ?), agent_id = ifnull(agent_id, ?), source_uuid = ifnull(source_uuid, ?)
WHERE id = ?`

	adoptPrompt = `UPDATE prompt_rows SET harness_prompt_id = ? WHERE id = ?`

	claimRows = `UPDATE observation_rows SET prompt_id = ?
WHERE session_key = ? AND harness_prompt_id = ? AND prompt_id IS NULL AND obs_type NOT LIKE 'session_%'`

	updatePinned = `UPDATE observation_rows SET is_pinned = ? WHERE id = ?`

	upsertImport = `INSERT INTO imports (path, size, mtime, offset) VALUES (?, ?, ?, ?)
ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime = excluded.mtime, offset = excluded.offset`
)

// Statements that find existing rows.
const (
	// The copy of a call in a resumed or forked session (observations §12).
	selectCopiedCall = `SELECT id FROM observation_rows
WHERE tool_use_id = ? AND part = ? AND content = ? AND timestamp BETWEEN ? AND ? LIMIT 1`

	selectRecentTwin = `SELECT id FROM observation_rows
WHERE session_key = ? AND timestamp > ? AND timestamp <= ? AND obs_type = ? AND path_key IS ? AND content = ?
  AND metadata ->> '$.failed' IS NULL AND metadata ->> '$.interrupted' IS NULL LIMIT 1`

	selectPromptByHarness = `SELECT id FROM prompt_rows
WHERE session_key = ? AND source = 'user' AND harness_prompt_id = ? ORDER BY timestamp, id LIMIT 1`

	// A live prompt with other content.
	selectOtherLivePrompt = `SELECT prompt_id FROM observation_rows
WHERE prompt_id = ? AND obs_type = 'user_prompt' AND content <> ? AND metadata ->> '$.imported' IS NULL`

	// The copy of a prompt in a resumed or forked session.
	selectCopiedPrompt = `SELECT prompt_id FROM observation_rows
WHERE project_key = ? AND obs_type = ? AND timestamp BETWEEN ? AND ? AND content = ? AND harness_prompt_id = ?
  AND session_key <> ? AND prompt_id IS NOT NULL LIMIT 1`

	selectPromptByLine = `SELECT id FROM prompt_rows WHERE source_uuid = ? LIMIT 1`

	selectPromptByText = `SELECT o.prompt_id FROM observation_rows o JOIN prompt_rows p ON p.id = o.prompt_id
WHERE o.session_key = ? AND o.timestamp BETWEEN ? AND ? AND o.obs_type = ? AND o.content = ?
  AND (p.source_uuid IS NOT NULL OR ?) ORDER BY o.id LIMIT 1`

	selectSameWords = `SELECT o.prompt_id FROM observation_rows o JOIN prompt_rows p ON p.id = o.prompt_id
WHERE o.session_key = ? AND o.obs_type = ? AND o.timestamp BETWEEN ? AND ? AND p.source_uuid IS NULL
  AND (o.content = ? OR ? AND substr(o.content, -length(?)) = ?)
ORDER BY abs(o.timestamp - ?), o.id LIMIT 1`

	selectCallsToCount = `SELECT obs_type, ifnull(path_key, ''), ifnull(metadata ->> '$.command', content), content
FROM observation_rows WHERE session_key = ? AND timestamp >= ? AND obs_type NOT IN ('user_prompt', 'agent_message')`

	selectSummaryNear = `SELECT prompt_id FROM observation_rows
WHERE session_key = ? AND timestamp BETWEEN ? AND ? AND obs_type = 'agent_message'
  AND metadata ->> '$.kind' = 'compact_summary' LIMIT 1`

	// The live prompt that was stored last is the newest, even if the clock was set back.
	selectNewestLivePrompt = `SELECT p.id FROM prompt_rows p
JOIN observation_rows o ON o.prompt_id = p.id AND o.obs_type = 'user_prompt'
WHERE p.session_key = ? AND p.source = 'user' AND (? OR p.harness_prompt_id IS NULL)
  AND o.metadata ->> '$.imported' IS NULL ORDER BY p.id DESC LIMIT 1`

	selectNewestPrompt = `SELECT id FROM prompt_rows
WHERE session_key = ? AND source = 'user' AND (? OR harness_prompt_id IS NULL) AND timestamp <= ?
ORDER BY timestamp DESC, id DESC LIMIT 1`

	selectActiveSession = `SELECT id FROM sessions
WHERE project_id = ? AND last_seen >= ? ORDER BY last_seen DESC LIMIT 1`

	selectID         = `SELECT id FROM observation_rows WHERE id = ?`
	selectSessionIDs = `SELECT o.id FROM observation_rows o JOIN sessions s ON s.key = o.session_key WHERE s.id = ?`
	selectFileIDs    = `SELECT id FROM observation_rows WHERE project_key = ? AND path_key = ?`
	selectImport     = `SELECT size, mtime, offset FROM imports WHERE path = ?`
)
