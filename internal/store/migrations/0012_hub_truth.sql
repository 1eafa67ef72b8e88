-- What a device knows about its hub. generation counts the joins and leaves of a user:
-- what belongs to an earlier one is refused. stop_code is why replication has stopped
-- until a person acts, NULL if it has not.
ALTER TABLE memory_users ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE memory_users ADD COLUMN stop_code TEXT;
ALTER TABLE memory_users ADD COLUMN stop_why TEXT;
ALTER TABLE memory_users ADD COLUMN stop_ns INTEGER NOT NULL DEFAULT 0;

-- The highest hub_seq that the hub has shown of a stream, by confirmations and pulls. A
-- hub whose head is below it was restored from a backup.
ALTER TABLE memory_streams ADD COLUMN seen_seq INTEGER NOT NULL DEFAULT 0;

-- The context that was current where this one was written, and the one that was current
-- at the hub instead when it arrived there: then this one lost, and is kept as a version.
ALTER TABLE memory_contexts ADD COLUMN base_id TEXT;
ALTER TABLE memory_contexts ADD COLUMN conflict_with TEXT;
-- The highest hub_seq of the memory that the writer had seen: a context that won merges
-- those that lost before it.
ALTER TABLE memory_contexts ADD COLUMN seen_seq INTEGER;
CREATE INDEX memory_contexts_conflicts ON memory_contexts (memory_id) WHERE conflict_with IS NOT NULL;
