package sessionstart

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/oneline"
	"cairn/internal/shell"
	"cairn/internal/store"
)

// tableRow is one row of the context's tables.
type tableRow struct {
	id, at  int64
	obsType string
	summary string // the cell; the file's path if the row is about a file
	path    string // key of the file that the row is about, "" if none
	failed  bool
	project string // id of the row's project, if it is another one
	remote  string // remote of the row's project, if it is another one
}

// suffix returns the text after the summary: "(failed)" and the id of another project.
func (r *tableRow) suffix() (s string) {
	if r.failed {
		s = " (failed)"
	}
	if r.project != "" {
		s += " [" + r.project + "]"
	}
	return s
}

// line renders rows that share a line: ids, newest time, type and summary.
func (r *tableRow) line(now int64, ids []int64, summary string) ledger.Line {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "#%d", id)
	}
	line := fmt.Sprintf("| %s | %s | %s | %s%s |", b.String(), oneline.Ago(now, r.at), r.obsType, summary, r.suffix())
	return ledger.Line{ID: ids[0], Also: ids[1:], Text: line, File: r.path}
}

// plainLines renders one line per row.
func plainLines(rows []tableRow, now int64) []ledger.Line {
	lines := make([]ledger.Line, len(rows))
	for i := range rows {
		r := &rows[i]
		summary := r.summary
		if r.path != "" {
			summary = oneline.Path(summary, ledger.MaxCell)
		}
		lines[i] = r.line(now, []int64{r.id}, summary)
	}
	return lines
}

// foldLines renders rows of the same type and folder as one line, at the position of the best
// row. It also folds rows of the same type and summary.
func foldLines(rows []tableRow, now int64) []ledger.Line {
	type group struct {
		newest *tableRow
		ids    []int64
		names  []string
	}
	var groups []*group
	byKey := map[string]*group{}
	for i := range rows {
		r := &rows[i]
		folder, name := "", ""
		key := r.obsType + "\x00" + r.suffix() + "\x00"
		if r.path == "" {
			key += "\x00" + r.summary
		} else {
			folder, name = path.Split(r.summary)
			key += folder
		}
		g := byKey[key]
		if g == nil {
			g = &group{newest: r}
			byKey[key] = g
			groups = append(groups, g)
		} else if r.at > g.newest.at {
			g.newest = r
		}
		g.ids = append(g.ids, r.id)
		if name != "" {
			g.names = append(g.names, name)
		}
	}
	lines := make([]ledger.Line, len(groups))
	for i, g := range groups {
		summary := g.newest.summary
		switch {
		case len(g.names) == 1:
			summary = oneline.Path(summary, ledger.MaxCell)
		case len(g.names) > 1:
			summary = filesCell(path.Dir(g.newest.summary), g.names)
		}
		lines[i] = g.newest.line(now, g.ids, summary)
	}
	return lines
}

// filesCell renders files of one folder, for example "internal/refund/: window.go, partial.go".
func filesCell(folder string, names []string) string {
	var b strings.Builder
	if folder != "." {
		b.WriteString(oneline.Path(folder+"/", ledger.MaxCell) + ": ")
	}
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(oneline.Cell(name, ledger.MaxCell))
	}
	return b.String()
}

// contextTypes returns the types of rows that the tables of the context may show.
func contextTypes() []string {
	return slices.DeleteFunc(observation.Types(), func(t string) bool {
		return t == observation.TypePrompt || t == observation.TypeMessage || t == observation.TypeSessionStart || t == observation.TypeSessionEnd
	})
}

// expiredScore ranks expired rows, which the next sweep deletes, after all others.
const expiredScore = -1

// maxPassedOver is the maximum number of unsuitable rows that are skipped for one table.
const maxPassedOver = 500

// contextScore returns the composite score of observations §9.1.
func (b *contextBuilder) contextScore(obsType string, at int64) float64 {
	if b.keep.Expired(obsType, at, b.now) {
		return expiredScore
	}
	return 0.6*observation.Recency(b.now, at, observation.RecencyDays) + 0.4*observation.ContextWeight(obsType)
}

// best returns the n best rows of the project or of other projects, at most one per file.
func (b *contextBuilder) best(ctx context.Context, tx *store.Tx, mode, n int, shown map[int64]bool) (out []tableRow, err error) {
	list, err := json.Marshal(contextTypes())
	if err != nil {
		return nil, err
	}
	r, err := observation.NewRanking(ctx, tx, observation.Lanes{Project: b.project.Key, Mode: mode}, string(list), func(_ int64, obsType string, at int64) float64 {
		return b.contextScore(obsType, at)
	})
	if err != nil {
		return nil, err
	}
	r.Skip = observation.IsBookkeeping
	for passed := 0; len(out) < n && passed < maxPassedOver; {
		top, err := r.Take(ctx, tx, n-len(out))
		if err != nil || len(top) == 0 {
			return out, err
		}
		var ids []int64
		for _, t := range top {
			if t.Score > expiredScore && !shown[t.Id] && !(mode == observation.LaneOnly && observation.IsOutside(t.Path, b.project.Root)) {
				ids = append(ids, t.Id)
			}
		}
		rows, err := b.tableRows(ctx, tx, ids)
		if err != nil {
			return nil, err
		}
		out = append(out, rows...)
		passed += len(top) - len(rows)
	}
	return out, nil
}

// These queries read the newest rows of one session, or of the other sessions of a project
// after a given time.
const (
	selectOwnRows = `SELECT id, timestamp, obs_type, ifnull(path_key, '') FROM observation_rows
WHERE session_key = ?1 AND timestamp >= ?2 ORDER BY timestamp DESC, id DESC LIMIT 500`

	selectRowsSince = `SELECT o.id, o.timestamp, o.obs_type, ifnull(o.path_key, '')
FROM json_each(?3) t CROSS JOIN observation_rows o ON o.project_key = ?1 AND o.obs_type = t.value AND o.timestamp > ?2
WHERE o.session_key != ?4 ORDER BY o.timestamp DESC, o.id DESC LIMIT 500`
)

// readLocal reads the table of the project.
func (b *contextBuilder) readLocal(ctx context.Context, tx *store.Tx, shown map[int64]bool) (err error) {
	if !b.span.own && !b.span.resumed {
		b.local, err = b.best(ctx, tx, observation.LaneOnly, *b.limits.Local, shown)
		return err
	}
	list, err := json.Marshal(contextTypes())
	if err != nil {
		return err
	}
	query, args := selectOwnRows, []any{b.span.session, 0}
	if b.span.resumed {
		query, args = selectRowsSince, []any{b.project.Key, b.span.since, string(list), b.span.session}
	}
	var all []observation.Ranked
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var row observation.Ranked
		var obsType string
		err := r.Scan(&row.Id, &row.Timestamp, &obsType, &row.Path)
		row.Score = b.contextScore(obsType, row.Timestamp)
		if observation.IsAction(obsType) && row.Score > expiredScore && !shown[row.Id] && !observation.IsOutside(row.Path, b.project.Root) {
			all = append(all, row)
		}
		return err
	}, query, args...)
	if err != nil {
		return err
	}
	slices.SortStableFunc(all, func(a, b observation.Ranked) int { return cmp.Compare(b.Score, a.Score) })
	seen := map[string]bool{}
	all = slices.DeleteFunc(all, func(r observation.Ranked) bool {
		known := r.Path != "" && seen[r.Path]
		seen[r.Path] = true
		return known
	})
	for len(all) > 0 && len(b.local) < *b.limits.Local {
		n := min(len(all), *b.limits.Local-len(b.local))
		ids := make([]int64, n)
		for i := range ids {
			ids[i] = all[i].Id
		}
		rows, err := b.tableRows(ctx, tx, ids)
		if err != nil {
			return err
		}
		b.local, all = append(b.local, rows...), all[n:]
	}
	return nil
}

// maxOthers is the minimum number of other projects' rows that are compared with this project.
const maxOthers = 30

// readCross reads the table of other projects. Rows connected with this project come first.
// Connected rows share the remote's owner, a word of the project's id, or the name of a file
// that this context shows.
func (b *contextBuilder) readCross(ctx context.Context, tx *store.Tx, shown map[int64]bool) error {
	n := *b.limits.Cross
	if n <= 0 {
		return nil
	}
	rows, err := b.best(ctx, tx, observation.LaneOthers, max(n, maxOthers), shown)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, r := range b.local {
		names[path.Base(r.path)] = r.path != ""
	}
	for _, f := range b.likely {
		names[path.Base(f.Path)] = true
	}
	words, owner := likely.WordSet(b.project.ID), observation.RemoteOwner(b.project.OriginURL)
	connected := func(r *tableRow) bool {
		if owner != "" && observation.RemoteOwner(r.remote) == owner || r.path != "" && names[path.Base(r.path)] {
			return true
		}
		for w := range likely.WordSet(r.project) {
			if words[w] {
				return true
			}
		}
		return false
	}
	var first, rest []tableRow
	for _, r := range rows {
		if connected(&r) {
			first = append(first, r)
		} else {
			rest = append(rest, r)
		}
	}
	b.cross = append(first, rest...)
	b.cross = b.cross[:min(len(b.cross), n)]
	return nil
}

const selectContextRows = `SELECT o.id, o.timestamp, o.obs_type, substr(o.content, 1, 4096), ifnull(o.path_key, ''),
    ifnull(o.metadata, '{}'), ifnull(o.tool_name, ''), ifnull(o.agent_id, ''), o.project_key, p.id, ifnull(p.root, ''),
    ifnull(p.origin_url, '')
FROM json_each(?) j CROSS JOIN observation_rows o ON o.id = j.value JOIN projects p ON p.key = o.project_key ORDER BY j.key`

// tableRows reads rows for a table, in the order of ids. It omits the harness's bookkeeping and
// calls that the user interrupted. Unless the context is plain, it removes parts of commands
// that only shorten their output. It then also omits rows that reveal nothing about the
// project.
func (b *contextBuilder) tableRows(ctx context.Context, tx *store.Tx, ids []int64) (out []tableRow, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var r shownRow
		var id int64
		var meta, tool, agent, remote string
		err := rows.Scan(&id, &r.at, &r.obsType, &r.content, &r.path, &meta, &tool, &agent, &r.key, &r.project, &r.root, &remote)
		if err == nil {
			err = json.Unmarshal([]byte(meta), &r.facts)
		}
		if err != nil || observation.IsBookkeeping(r.obsType, tool) || isHarnessFork(agent) || r.interrupted() || !b.limits.Plain && r.isPassing() {
			return err
		}
		if r.obsType == observation.TypeCommand && !b.limits.Plain {
			r.content = shell.WithoutPlumbing(r.content)
		}
		row := tableRow{id: id, at: r.at, obsType: r.obsType, failed: r.facts.Failed}
		if r.key != b.project.Key {
			row.project, row.remote = r.project, remote
		}
		if r.path != "" && r.obsType != observation.TypeSearch {
			row.path, row.summary = r.path, observation.Below(r.path, r.root)
		} else {
			row.summary = r.summary()
		}
		out = append(out, row)
		return nil
	}, selectContextRows, string(list))
	return out, err
}

// rows renders rows as plain table lines, in the order of ids.
func (b *contextBuilder) rows(ctx context.Context, tx *store.Tx, ids []int64) ([]ledger.Line, error) {
	rows, err := b.tableRows(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	lines := plainLines(rows, b.now)
	for i := range lines {
		if rows[i].project != "" {
			lines[i].File = ""
		}
	}
	return lines, nil
}

// isHarnessFork reports whether Claude Code forked this agent for itself, to suggest a prompt
// or to summarise. Such an id is "aprompt_suggestion-1f3c". The id of a subagent is the letter
// a and hexadecimal digits.
func isHarnessFork(agent string) bool {
	rest, ok := strings.CutPrefix(agent, "a")
	cut := strings.LastIndexByte(rest, '-')
	if !ok || cut < 0 {
		return false
	}
	name := rest[:cut]
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == "" && strings.ContainsAny(name, "ghijklmnopqrstuvwxyz_")
}

// shownRow contains the columns of a row that the context uses.
type shownRow struct {
	at, key                               int64
	obsType, content, path, project, root string
	facts                                 struct {
		Failed      bool   `json:"failed"`
		Interrupted bool   `json:"interrupted"`
		Command     string `json:"command"`
		Error       string `json:"error"`
		Hash        string `json:"commit_hash"`
		Message     string `json:"commit_message"`
		Branch      string `json:"branch"`
		Range       string `json:"hash_range"`
	}
}

// interrupted reports whether the user interrupted the call.
func (r *shownRow) interrupted() bool {
	return r.facts.Interrupted || strings.Contains(oneline.Cut(r.facts.Error, 400), "[Request interrupted by user")
}

// isPassing reports whether the row reveals nothing about the project. That is a command whose
// "cd" failed, or a commit in a repository that the command created for a trial.
func (r *shownRow) isPassing() bool {
	return r.obsType == observation.TypeCommandError && r.lostItsWay() || r.obsType == observation.TypeGitCommit && shell.InNewRepository(r.content)
}

// lostItsWay reports whether a command failed because its "cd" failed.
func (r *shownRow) lostItsWay() bool {
	said := oneline.Cut(observation.Reason(r.facts.Command, r.facts.Error), 200)
	return strings.Contains(said, ":cd:") || strings.Contains(said, " cd: ") || strings.HasPrefix(said, "cd: ")
}

const (
	maxReasonCell = 90 // maximum characters of a failure with its reason, or of a commit with its message
)

// summary returns the cell of a row that is not about a file. A commit shows hash and subject,
// a push shows branch and range, and a failure shows command and reason. Other rows show the
// first line of the content. Paths are relative to the repository.
func (r *shownRow) summary() string {
	f := &r.facts
	switch {
	case r.obsType == observation.TypeGitCommit && f.Hash != "":
		return oneline.Cell(f.Hash+" "+f.Message, maxReasonCell)
	case r.obsType == observation.TypeGitPush && f.Branch != "":
		return oneline.Cell(strings.TrimSpace("to "+f.Branch+" "+f.Range), ledger.MaxCell)
	case r.obsType == observation.TypeCommandError:
		return reasonCell(r.relative(f.Command), r.relative(observation.Reason(f.Command, f.Error)))
	case r.path != "" && r.obsType != observation.TypeSearch:
		return oneline.Path(observation.Below(r.path, r.root), ledger.MaxCell)
	}
	return oneline.Cell(r.relative(r.content), ledger.MaxCell)
}

// reasonCell renders a command and the reason why it failed. If a long reason begins with a
// file, the folder of the file is removed.
func reasonCell(command, reason string) string {
	if reason == "" {
		return oneline.Cell(command, ledger.MaxCell)
	}
	if file, _, _ := strings.Cut(reason, " "); utf8.RuneCountInString(reason) > maxReasonCell/2 {
		reason = reason[strings.LastIndexByte(file, '/')+1:]
	}
	command = oneline.Cell(command, maxReasonCell-min(utf8.RuneCountInString(reason), maxReasonCell/2)-2)
	return oneline.Cell(command+": "+reason, maxReasonCell)
}

func (r *shownRow) relative(s string) string {
	if r.root == "" {
		return s
	}
	return strings.ReplaceAll(s, r.root+"/", "")
}
