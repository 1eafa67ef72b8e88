package consistency

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/store"
	"cairn/internal/store/salvage"
)

const (
	selectRecordProjects = `SELECT p.key, p.id FROM projects p WHERE p.last_record > 0 OR p.tick > 0
OR EXISTS (SELECT 1 FROM records r WHERE r.project_key = p.key) OR EXISTS (SELECT 1 FROM record_ticks t WHERE t.project_key = p.key)
OR EXISTS (SELECT 1 FROM symbols s WHERE s.text = ifnull(p.records_stream, 'records/' || p.id)) ORDER BY p.key`

	selectLoggedTicks = `SELECT c.seq, k.text, c.id, ifnull(CAST(c.doc ->> '$.tick' AS INTEGER), 0) FROM changes c JOIN symbols k ON k.id = c.kind
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?) AND c.doc IS NOT NULL AND json_valid(c.doc) ORDER BY c.seq`
	selectStoredTicks = `SELECT t.tick, t.seq, c.seq IS NOT NULL AND c.doc IS NULL AND c.stream IS (SELECT id FROM symbols WHERE text = ?2)
FROM record_ticks t LEFT JOIN changes c ON c.seq = t.seq WHERE t.project_key = ?1 ORDER BY t.tick`
	deleteTicks     = `DELETE FROM record_ticks WHERE project_key = ?`
	selectHighest   = `SELECT max(?2, ifnull((SELECT max(number) FROM records WHERE project_key = ?1), 0))`
	updatePath      = `UPDATE records SET path = ?3 WHERE project_key = ?1 AND number = ?2`
	updateOrigin    = `UPDATE records SET parent = ?3, created_at = ?4 WHERE project_key = ?1 AND number = ?2`
	selectSessionOf = `SELECT id FROM sessions WHERE key = ?`
)

// unreadable returns the statements that delete unreadable rows and values, before rows
// are read.
func unreadable() []string {
	return []string{
		`UPDATE records SET related = NULL WHERE related IS NOT NULL AND (NOT json_valid(related) OR json_type(related) <> 'array')`,
		`UPDATE records SET cited = NULL WHERE cited IS NOT NULL AND (NOT json_valid(cited) OR json_type(cited) <> 'array')`,
		`UPDATE records SET metadata = NULL WHERE metadata IS NOT NULL AND (NOT json_valid(metadata) OR json_type(metadata) <> 'object')`,
		`UPDATE activations SET holders = NULL WHERE holders IS NOT NULL AND (NOT json_valid(holders) OR json_type(holders) <> 'array')`,
		`DELETE FROM records WHERE number < 1 OR version < 1`,
	}
}

// repairs returns the statements that make rows consistent, in order.
func repairs() []string {
	return []string{
		// A session with an active record must have started.
		`INSERT OR IGNORE INTO record_sessions (project_key, session_key, opened_at, last_activity, last_sync_tick, save_tick)
SELECT a.project_key, a.session_key, min(a.at), max(a.at), p.tick, p.tick FROM activations a JOIN projects p ON p.key = a.project_key
JOIN sessions s ON s.key = a.session_key GROUP BY a.project_key, a.session_key`,
		`UPDATE record_sessions SET closed = 1 WHERE closed NOT IN (0, 1)`,
		`UPDATE record_sessions SET last_sync_tick = min(last_sync_tick, (SELECT tick FROM projects WHERE key = project_key)),
save_tick = min(save_tick, (SELECT tick FROM projects WHERE key = project_key))
WHERE project_key IN (SELECT key FROM projects)`,
		`DELETE FROM activations AS a WHERE a.base_version < 1
OR NOT EXISTS (SELECT 1 FROM record_sessions m WHERE m.project_key = a.project_key AND m.session_key = a.session_key AND m.closed = 0)
OR NOT EXISTS (SELECT 1 FROM records r WHERE r.project_key = a.project_key AND r.number = a.number AND r.version >= a.base_version)`,
		`INSERT INTO records_fts (records_fts) VALUES ('delete-all')`,
	}
}

// Repair repairs the records that a salvage has kept. Rows that are lost or older than
// the change log come from the log. Rows that the log has lost are logged again. The
// clock counts every tick of the log; a tick whose change is lost gets a change without
// a document. Paths, activations and searchable words are derived again. It is this
// part's share of salvage.Run. On intact records it changes nothing but the index,
// and it is safe to retry.
func Repair(ctx context.Context, tx *store.Tx) error {
	if err := execAll(ctx, tx, unreadable()); err != nil {
		return err
	}
	var all []project.Project
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var p project.Project
		err := rows.Scan(&p.Key, &p.ID)
		all = append(all, p)
		return err
	}, selectRecordProjects)
	for _, p := range all {
		var s *record.CallTx
		if err == nil {
			s, err = record.ScopeOf(ctx, tx, p)
		}
		if err == nil {
			err = repairProject(ctx, s)
		}
	}
	if err == nil {
		err = execAll(ctx, tx, repairs())
	}
	if err != nil {
		return err
	}
	return fillWords(ctx, tx)
}

func execAll(ctx context.Context, tx *store.Tx, statements []string) error {
	for _, query := range statements {
		if _, err := tx.Exec(ctx, query); err != nil {
			return fmt.Errorf("%.60s: %w", query, err)
		}
	}
	return nil
}

// repairProject repairs the records of one project.
func repairProject(ctx context.Context, s *record.CallTx) error {
	ids, err := repairClock(ctx, s)
	if err != nil {
		return err
	}
	rows := map[int64]record.Stored{}
	err = s.Tx.Each(ctx, func(r *sql.Rows) error {
		row, err := record.ScanRecord(r)
		rows[row.Number] = row
		ids[row.Number] = true
		return err
	}, selectAllRecords, s.Project.Key)
	if err != nil {
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(ids)) { // parents have lower numbers
		row, there := rows[number]
		if err := repairRecord(ctx, s, number, row, there); err != nil {
			return err
		}
	}
	return nil
}

// repairClock sets the ticks to those of the change log and returns the numbers of the
// records in the log.
func repairClock(ctx context.Context, s *record.CallTx) (ids map[int64]bool, err error) {
	ids = map[int64]bool{}
	seqs, lost := map[int64]int64{}, map[int64]int64{} // tick → seq
	last, lastRecord := int64(0), int64(0)
	err = s.Tx.Each(ctx, func(r *sql.Rows) error {
		var seq, tick int64
		var kind, id string
		if err := r.Scan(&seq, &kind, &id, &tick); err != nil {
			return err
		}
		if number, ok := record.ParseID(id); kind == record.KindRecord && ok {
			ids[number] = true
			lastRecord = max(lastRecord, number)
		}
		if tick > 0 {
			seqs[tick] = seq
			last = max(last, tick)
		}
		return nil
	}, selectLoggedTicks, s.Stream)
	if err != nil {
		return ids, err
	}
	err = s.Tx.Each(ctx, func(r *sql.Rows) error {
		var tick, seq int64
		var blank bool
		if err := r.Scan(&tick, &seq, &blank); err != nil {
			return err
		}
		if _, logged := seqs[tick]; logged || tick < 1 {
			return nil
		}
		if !blank {
			lost[tick] = seq
		} else if tick <= last+1 { // changes at the end may be blank, one per tick
			seqs[tick] = seq
			last = max(last, tick)
		}
		return nil
	}, selectStoredTicks, s.Project.Key, s.Stream)
	if err != nil {
		return ids, err
	}
	for lost[last+1] > 0 {
		last++
	}
	if err := putTicks(ctx, s, last, seqs, lost); err != nil {
		return ids, err
	}
	s.Tick = last
	if err := s.Tx.Get(ctx, []any{&lastRecord}, selectHighest, s.Project.Key, lastRecord); err != nil {
		return ids, err
	}
	return ids, project.AdvanceClock(ctx, s.Tx, s.Project.Key, last, lastRecord)
}

// putTicks replaces the ticks of the project by those up to the last one. seqs are their
// positions in the log, lost the former positions of missing ones.
func putTicks(ctx context.Context, s *record.CallTx, last int64, seqs, lost map[int64]int64) error {
	if _, err := s.Tx.Exec(ctx, deleteTicks, s.Project.Key); err != nil {
		return err
	}
	for tick := int64(1); tick <= last; tick++ {
		var err error
		seq, ok := seqs[tick]
		if !ok {
			seq, err = salvage.AppendLost(ctx, s.Tx, lost[tick], store.Change{
				Project: s.Project.ID, Stream: s.Stream, Kind: record.KindEvent, ID: "lost", Op: store.OpPut,
			})
		}
		if err == nil {
			_, err = s.Tx.Exec(ctx, record.InsertTick, s.Project.Key, tick, seq)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// repairRecord compares a record's row with its newest version in the log and repairs the
// older one of the two.
func repairRecord(ctx context.Context, s *record.CallTx, number int64, row record.Stored, there bool) error {
	newest, err := s.Newest(ctx, record.FormatID(number), math.MaxInt64)
	if err != nil {
		return err
	}
	known := newest.Entry != nil && newest.Version > 0
	switch {
	case !known:
		blanked, err := s.IsLogged(ctx, number)
		if err != nil || blanked || !there {
			return err
		}
		err = logRow(ctx, s, row, record.RecordCreated)
		if err != nil {
			return err
		}
	case there && row.Version > newest.Version:
		if err := logRow(ctx, s, row, record.RecordUpdated); err != nil {
			return err
		}
	case !there || !equal(&newest.Record, &row.Record):
		if err := putLogged(ctx, s, newest, number); err != nil {
			return err
		}
	}
	parent, path := row.ParentID, row.Path
	if known && newest.Version >= row.Version {
		parent = newest.ParentID
	}
	want, err := s.PathOf(ctx, parent, number)
	if err == nil && !bytes.Equal(want, path) {
		_, err = s.Tx.Exec(ctx, updatePath, s.Project.Key, number, want)
	}
	return err
}

// putLogged sets a record's row to a version in the log.
func putLogged(ctx context.Context, s *record.CallTx, v record.Logged, number int64) error {
	m, err := s.MemberOf(ctx, v.Session)
	if err == nil && m.Key == 0 {
		var q project.Session
		q, err = project.NewSession(ctx, s.Tx, sessionOr(v.Session), s.Project)
		m.Key = q.Key
	}
	if err == nil {
		err = s.PutRow(ctx, m, v.Entry, number)
	}
	if err == nil {
		_, err = s.Tx.Exec(ctx, updateOrigin, s.Project.Key, number, record.NumberOrNull(record.Deref(v.ParentID)), int64(v.Created))
	}
	return err
}

func sessionOr(id string) string {
	if id == "" {
		return "lost"
	}
	return id
}

// logRow appends a version for a row that is missing in the log, with the next tick.
func logRow(ctx context.Context, s *record.CallTx, row record.Stored, event string) error {
	var session string
	err := s.Tx.Get(ctx, []any{&session}, selectSessionOf, row.Creator)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	m, err := s.MemberOf(ctx, sessionOr(session))
	if err != nil {
		return err
	}
	return s.PutEntry(ctx, m, &record.Entry{Record: row.Record, Event: event})
}

// fillWords fills the empty index with the words of all records.
func fillWords(ctx context.Context, tx *store.Tx) error {
	return record.EachOfAll(ctx, tx, func(r record.Stored) error { return record.PutWords(ctx, tx, r.Key, &r.Record, true) })
}
