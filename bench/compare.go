package main

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/store"
)

const (
	// Rows that an import adds to a store that has recorded the session live.
	selectImported = `SELECT printf('#%d %s %s %s %s', o.id, o.obs_type, ifnull(o.tool_use_id, '-'), datetime(o.timestamp, 'unixepoch'),
    replace(substr(o.content, 1, 100), char(10), ' '))
FROM observations o WHERE o.metadata ->> '$.imported' ORDER BY o.id`

	countTwiceByCall = `SELECT count(*) FROM (SELECT 1 FROM observations WHERE tool_use_id IS NOT NULL
GROUP BY session_id, tool_use_id, part HAVING count(*) > 1)`

	// Rows that are stored both by the hook and by the import.
	countTwiceByContent = `SELECT count(*) FROM observations i WHERE i.metadata ->> '$.imported' AND EXISTS (
SELECT 1 FROM observations l WHERE l.session_id = i.session_id AND l.obs_type = i.obs_type AND l.content = i.content
  AND l.path_key IS i.path_key AND abs(l.timestamp - i.timestamp) <= 300 AND l.metadata ->> '$.imported' IS NULL)`

	// The rows of calls from hook and import. The duration of a call is omitted because
	// transcripts rarely contain it.
	selectCalls = `SELECT session_id || ' ' || tool_use_id || ' ' || part, obs_type, content, ifnull(file_path, ''), ifnull(path_key, ''),
    ifnull(project_id, ''), ifnull(agent_id, ''), json_remove(ifnull(metadata, '{}'), '$.imported', '$.duration_ms')
FROM observations WHERE tool_use_id IS NOT NULL`
)

// compare imports the copies into the hook's store and into an empty store, and reports the
// differences.
func (r *replaying) compare(ctx context.Context, t *table, dir string) error {
	before, err := countRows(ctx, r.live)
	if err != nil {
		return err
	}
	live, err := r.calls(ctx, r.live)
	if err != nil {
		return err
	}
	report, err := r.importInto(ctx, r.live)
	if err != nil {
		return err
	}
	alone := filepath.Join(dir, "imported", "cairn.db")
	if _, err := r.importInto(ctx, alone); err != nil {
		return err
	}
	imported, err := r.calls(ctx, alone)
	if err != nil {
		return err
	}
	return withJournal(ctx, r.live, func(j journal) error {
		byCall, err := j.count(ctx, countTwiceByCall)
		if err != nil {
			return err
		}
		byContent, err := j.count(ctx, countTwiceByContent)
		if err != nil {
			return err
		}
		added, err := j.texts(ctx, selectImported)
		if err != nil {
			return err
		}
		findings, err := j.store.Check(ctx)
		if err != nil {
			return err
		}
		t.add("rows after the hook calls", before)
		t.add("rows that the import added", report.Added).target("none", report.Added == 0)
		t.add("events that the import knew", report.Known)
		t.add("reads and searches that it dropped as repeats", report.Deduped)
		t.add("calls stored twice, by session, tool_use_id and part", byCall).target("none", byCall == 0)
		t.add("rows stored twice, by session and content", byContent).target("none", byContent == 0)
		t.add("findings of the store's own check", len(findings)).target("none", len(findings) == 0)
		t.differences(live, imported)
		for _, row := range added[:min(len(added), 40)] {
			t.note("added: %s", row)
		}
		for _, why := range slices.Sorted(maps.Keys(report.Skipped)) {
			t.note("skipped by the import: %d %s", report.Skipped[why], why)
		}
		return nil
	})
}

// callRow contains the fields of a call's row.
type callRow [7]string

func callFields() []string {
	return []string{"obs_type", "content", "file_path", "path_key", "project_id", "agent_id", "metadata"}
}

func (r *replaying) calls(ctx context.Context, db string) (calls map[string]callRow, err error) {
	calls = map[string]callRow{}
	err = withJournal(ctx, db, func(j journal) error {
		return j.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			return tx.Each(ctx, func(rows *sql.Rows) error {
				var key string
				var c callRow
				err := rows.Scan(&key, &c[0], &c[1], &c[2], &c[3], &c[4], &c[5], &c[6])
				calls[key] = c
				return err
			}, selectCalls)
		})
	})
	return calls, err
}

// differences reports the calls that differ between hook and import.
func (t *table) differences(live, imported map[string]callRow) {
	onlyLive, onlyImported, byField := 0, 0, map[string]int{}
	var examples []string
	for _, key := range slices.Sorted(maps.Keys(live)) {
		l := live[key]
		i, ok := imported[key]
		if !ok {
			onlyLive++
			examples = append(examples, fmt.Sprintf("only live: %s %s %.80q", key, l[0], l[1]))
			continue
		}
		for f, name := range callFields() {
			if l[f] != i[f] {
				byField[name]++
				examples = append(examples, fmt.Sprintf("%s of %s: live %.200q, imported %.200q", name, key, l[f], i[f]))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(imported)) {
		if _, ok := live[key]; !ok {
			onlyImported++
			examples = append(examples, fmt.Sprintf("only imported: %s %s %.80q", key, imported[key][0], imported[key][1]))
		}
	}
	t.add("calls with a row of both", len(live)-onlyLive)
	t.add("calls with a row of the hook alone", onlyLive)
	t.add("calls with a row of the import alone", onlyImported)
	for _, name := range callFields() {
		t.add("calls whose "+name+" differs", byField[name])
	}
	for _, e := range examples[:min(len(examples), 30)] {
		t.note("%s", strings.ToValidUTF8(e, "�"))
	}
}
