package sessionstart

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/oneline"
	"cairn/internal/shell"
	"cairn/internal/store"
)

const (
	maxChecks   = 3
	checkSample = 200 // number of newest commands of a project that are searched for checks

	// The result is one text, as for selectTouched of package likely, newest first. LIKE instead
	// of shell.MayCheck would take several times as long.
	selectChecks = `SELECT ifnull(group_concat(id || ' ' || content, char(0)), '')
FROM (SELECT id, content FROM observation_rows
    WHERE project_key = ? AND obs_type = 'command' AND timestamp >= ? AND octet_length(content) <= 400
    ORDER BY timestamp DESC, id DESC LIMIT +?)`
)

// usualCheck is a check and the number of times it passed.
type usualCheck struct {
	shell.Check
	id     int64 // the row of its last success
	order  int   // rank of its last success among the rows: higher means newer
	passed int
}

// readChecks finds, for each kind of check, the command that passed most often. It renders up
// to three of them as one line, the last success first.
func (b *contextBuilder) readChecks(ctx context.Context, tx *store.Tx) error {
	if b.span.resumed || b.project.Key == 0 {
		return nil
	}
	checks := usualChecks{byText: map[string]*usualCheck{}, parsed: map[string][]shell.Check{}}
	err := observation.EachNumbered(ctx, tx, func(id [1]int64, line string) error {
		checks.add(id[0], line)
		return nil
	}, selectChecks, b.project.Key, b.keep.Cutoff(observation.TypeCommand, b.now), checkSample)
	found := checks.best()
	if err != nil || len(found) == 0 {
		return err
	}
	row := ledger.Line{ID: found[0].id}
	texts := make([]string, len(found))
	for i, c := range found {
		texts[i] = oneline.Cell(c.Text, ledger.MaxCell)
		if c.id != row.ID && !slices.Contains(row.Also, c.id) {
			row.Also = append(row.Also, c.id)
		}
	}
	row.Text = "- " + strings.Join(texts, " · ")
	b.checks = []ledger.Line{row}
	return nil
}

// usualChecks counts the checks in commands, which must be added newest first.
type usualChecks struct {
	byText map[string]*usualCheck
	parsed map[string][]shell.Check // by command line, because many lines repeat
}

func (u *usualChecks) add(id int64, line string) {
	if !shell.MayCheck(line) {
		return
	}
	found, ok := u.parsed[line]
	if !ok {
		found = shell.Checks(line)
		u.parsed[line] = found
	}
	for _, c := range slices.Backward(found) {
		known := u.byText[c.Text]
		if known == nil {
			known = &usualCheck{Check: c, id: id, order: -len(u.byText)}
			u.byText[c.Text] = known
		}
		known.passed++
	}
}

// best returns, for up to three kinds, the check that passed most often. The check with the
// last success comes first.
func (u *usualChecks) best() []*usualCheck {
	best := map[string]*usualCheck{}
	for _, c := range u.byText {
		if k := best[c.Kind]; k == nil || c.passed > k.passed || c.passed == k.passed && c.order > k.order {
			best[c.Kind] = c
		}
	}
	found := slices.Collect(maps.Values(best))
	slices.SortFunc(found, func(a, b *usualCheck) int { return cmp.Compare(b.order, a.order) })
	return found[:min(len(found), maxChecks)]
}
