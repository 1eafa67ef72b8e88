package items

import (
	"context"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/store"
)

// invariants returns queries that select human-readable findings about broken invariants. Each
// finding begins with the broken promise (memories §1).
func invariants() []string {
	return []string{
		`SELECT 'P3: stream ' || stream || ' has a position beyond its newest change' FROM memory_streams WHERE acked_seq > head_seq OR sent_seq > head_seq`,

		`SELECT 'P3: memory ' || m.memory_id || ' has no stream' FROM memories m LEFT JOIN memory_streams s ON s.stream = m.memory_id WHERE s.stream IS NULL`,

		`SELECT 'P4: the inflight entry pending-' || e.key || ' is not in the log, so it will not be sent' FROM memory_entries e
LEFT JOIN changes c ON c.seq = e.seq LEFT JOIN symbols t ON t.id = c.stream
WHERE e.synced = 0 AND (c.doc IS NULL OR t.text <> e.memory_id OR c.id <> 'pending-' || e.key)
-- but for what is left of a memory that another device deleted, until it is discarded
AND NOT (EXISTS (SELECT 1 FROM set_aside f WHERE f.follower = 'replication' AND f.seq = e.seq) AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.memory_id = e.memory_id))`,

		`SELECT 'P4: the inflight entry pending-' || e.key || ' is before the position of its stream, so it will not be sent' FROM memory_entries e
JOIN memory_streams s ON s.stream = e.memory_id
WHERE e.synced = 0 AND s.acked_seq >= e.seq AND NOT EXISTS (SELECT 1 FROM set_aside f WHERE f.follower = 'replication' AND f.seq = e.seq)`,

		`SELECT 'P5: the entry of row ' || key || ' is neither inflight nor committed' FROM memory_entries
WHERE synced NOT IN (0, 1) OR (synced = 1) <> (entry_id IS NOT NULL) OR (synced = 1) <> (canonical_ns IS NOT NULL)`,

		`SELECT 'P6: the entry of row ' || e.key || ' is hidden by a delete that does not exist' FROM memory_entries e
LEFT JOIN changes c ON c.seq = e.deleting_seq LEFT JOIN symbols o ON o.id = c.op
WHERE e.deleting_seq IS NOT NULL AND (o.text IS NOT 'delete' OR c.doc IS NULL)`,

		`SELECT 'P6: memory ' || m.memory_id || ' is hidden by a delete that does not exist' FROM memories m
LEFT JOIN changes c ON c.seq = m.deleting_seq LEFT JOIN symbols o ON o.id = c.op
WHERE m.deleting_seq IS NOT NULL AND (o.text IS NOT 'delete' OR c.doc IS NULL)`,

		`SELECT 'P7: numbers of entry rows may be assigned twice' FROM (SELECT ifnull(max(key), 0) AS newest FROM memory_entries)
WHERE newest > ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'memory_entries'), 0)`,

		`SELECT 'P7: ' || c.id || ' was assigned and may be assigned again' FROM changes c JOIN symbols k ON k.id = c.kind
WHERE k.text = 'entry' AND c.id GLOB 'pending-[1-9]*'
AND CAST(substr(c.id, 9) AS INTEGER) > ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'memory_entries'), 0)`,

		`SELECT 'P8: two entries of memory ' || memory_id || ' have the same time' FROM memory_entries WHERE canonical_ns IS NOT NULL
GROUP BY memory_id, canonical_ns HAVING count(*) > 1`,

		`SELECT 'P8: the next entry of memory ' || s.stream || ' may be older than an existing one' FROM memory_streams s
WHERE s.last_canonical_ns < ifnull((SELECT max(canonical_ns) FROM memory_entries WHERE memory_id = s.stream), 0)
OR s.last_ns < ifnull((SELECT max(creation_ns) FROM memory_entries WHERE memory_id = s.stream AND synced = 0), 0)
OR s.context_ns < ifnull((SELECT max(updated_ns) FROM memory_contexts WHERE memory_id = s.stream), 0)`,

		`SELECT 'P9: the entry of row ' || e.key || ' does not belong to the owner of its memory' FROM memory_entries e JOIN memories m ON m.memory_id = e.memory_id
WHERE e.user_id <> m.user_id OR e.vault_id <> m.vault_id`,

		`SELECT 'P9: memory ' || m.memory_id || ' does not belong to the owner of its vault' FROM memories m JOIN memory_vaults v ON v.vault_id = m.vault_id
WHERE m.user_id <> v.user_id`,

		`SELECT 'P10: the entry of row ' || e.key || ' was deleted and exists' FROM memory_entries e
JOIN memory_tombstones t ON t.memory_id = e.memory_id AND t.id IN (e.entry_id, e.hub_key)`,

		`SELECT 'P10: an entry of memory ' || t.memory_id || ' was deleted and is still in the log' FROM memory_tombstones t
JOIN changes c ON c.kind = (SELECT id FROM symbols WHERE text = 'entry') AND c.id = t.id AND c.doc IS NOT NULL
JOIN symbols o ON o.id = c.op WHERE o.text IN ('put', 'patch')`,

		// The numbers of the index's rows identify entries and contexts.
		`SELECT 'P6: the committed entry of row ' || key || ' is not in the index' FROM memory_entries
WHERE synced = 1 AND (place IS NULL OR place NOT IN (SELECT id FROM memory_words_docsize))`,

		`SELECT 'P6: the inflight entry of row ' || key || ' is in the index' FROM memory_entries WHERE synced = 0 AND place IS NOT NULL`,

		`SELECT 'P6: context ' || seq || ' is not in the index' FROM memory_contexts WHERE -seq NOT IN (SELECT id FROM memory_words_docsize)`,

		`SELECT 'P10: the index contains a missing entry, at place ' || id FROM memory_words_docsize
WHERE id >= 0 AND id NOT IN (SELECT place FROM memory_entries WHERE place IS NOT NULL)`,

		`SELECT 'P10: the index contains the missing context ' || -id FROM memory_words_docsize
WHERE id < 0 AND -id NOT IN (SELECT seq FROM memory_contexts)`,

		`SELECT 'P11: the entry of row ' || e.key || ' differs from the log' FROM memory_entries e JOIN changes c ON c.seq = e.seq
WHERE c.doc IS NOT NULL AND c.doc ->> '$.rawEntry' IS NOT e.raw_entry`,

		`SELECT 'P11: the entry of row ' || key || ' has tags or metadata that are not JSON' FROM memory_entries
WHERE NOT json_valid(tags) OR metadata IS NOT NULL AND NOT json_valid(metadata)`,

		`SELECT 'P11: context ' || x.seq || ' differs from the log' FROM memory_contexts x JOIN changes c ON c.seq = x.change_seq
WHERE c.doc IS NOT NULL AND c.doc ->> '$.markdown' IS NOT x.markdown`,
	}
}

// Check returns findings about broken invariants of the rows; none for intact rows. It changes
// nothing.
func Check(ctx context.Context, tx *store.Tx) (findings []string, err error) {
	for _, query := range invariants() {
		found, err := tx.Texts(ctx, query)
		if findings = append(findings, found...); err != nil {
			return findings, err
		}
	}
	found, err := missing(ctx, (&memory.CallTx{Kernel: &memory.Kernel{}, Tx: tx}))
	return append(findings, found...), err
}

// missing returns human-readable findings about rows that are in the log and not in the tables.
func missing(ctx context.Context, s *memory.CallTx) (findings []string, err error) {
	reported := map[string]bool{}
	report := func(what, id string) {
		if finding := "P11: " + what + " " + id + " is in the log and has no row"; !reported[finding] {
			reported[finding] = true
			findings = append(findings, finding)
		}
	}
	memories, err := lost(ctx, s, selectLostMemories)
	for _, d := range memories {
		s.Memory.MemoryID = d.ID
		if deleted, err := s.WasDeleted(ctx, d.ID); err != nil {
			return findings, err
		} else if !deleted {
			report("memory", d.ID)
		}
	}
	if err != nil {
		return findings, err
	}
	for _, read := range []func(context.Context, *memory.CallTx) ([]Item, error){
		orphanedMemories, orphanedVaults,
		func(ctx context.Context, s *memory.CallTx) ([]Item, error) { return lost(ctx, s, selectLostVaults) },
	} {
		docs, err := read(ctx, s)
		if err != nil {
			return findings, err
		}
		for _, d := range docs {
			report(d.Kind, d.ID)
		}
	}
	rows, err := lost(ctx, s, selectLostEntries, selectLostContexts)
	if err != nil {
		return findings, err
	}
	for i := range rows {
		if err := missingContent(ctx, s, &rows[i], report); err != nil {
			return findings, err
		}
	}
	return findings, nil
}

// missingContent reports an entry or a context of the log that has no row in its memory.
func missingContent(ctx context.Context, s *memory.CallTx, d *Item, report func(what, id string)) error {
	there, err := home(ctx, s, d.Memory)
	if err != nil || !there {
		return err
	}
	switch v := d.parsed.(type) {
	case *contents.ContextDoc:
		report("context", d.ID)
	case *contents.EntryDoc:
		_, found, err := entryByAnyName(ctx, s, v.Key, v.EntryID, d.localKey(v))
		if err != nil || found {
			return err
		}
		if deleted, err := s.WasDeleted(ctx, v.EntryID, v.Key); err != nil || deleted {
			return err
		}
		report("the entry", d.ID)
	}
	return nil
}

// home sets the scope's memory and its owner. ok is false if the memory is missing.
func home(ctx context.Context, s *memory.CallTx, memoryID string) (ok bool, err error) {
	var m memory.MemoryRow
	err = s.Tx.Get(ctx, []any{&m.ActorID, &m.VaultID}, `SELECT user_id, vault_id FROM memories WHERE memory_id = ?`, memoryID)
	m.MemoryID, m.Exists = memoryID, err == nil
	s.User, s.Memory = memory.User{UserID: m.ActorID}, m
	return m.Exists, memory.IgnoreNone(err)
}
