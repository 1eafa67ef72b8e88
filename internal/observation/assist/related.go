package assist

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/observation/likely"
	"cairn/internal/observation/search"
	"cairn/internal/oneline"
	"cairn/internal/store"
)

const (
	// The start of the session's previous turn: the prompt before the present one.
	selectLastTurn = `SELECT o.id FROM observation_rows o JOIN prompt_rows p ON p.id = o.prompt_id
WHERE o.session_key = ?1 AND o.obs_type = 'user_prompt' AND o.id < ?2 ORDER BY o.id DESC LIMIT 1`
)

// related returns up to five rows that may help with a prompt, as search.Related finds them. If
// the budget runs out, it returns what has been found by then.
func (a *assistant) related(ctx context.Context, tx *store.Tx, prompt string) (out []ledger.Line, err error) {
	near, err := a.findNear(ctx, tx)
	if err != nil {
		return nil, unlessOver(ctx, err)
	}
	found, err := search.Related(ctx, a.service, tx, search.RelatedArgs{
		Prompt: prompt, Session: a.event.Session, Key: a.session, Project: a.project, Near: near, Shown: a.shown,
		InTime: func(ctx context.Context) context.Context { return a.budget.until(ctx, rankShare) },
	})
	for i := range found {
		out = append(out, a.helpLine(&found[i]))
	}
	return out, unlessOver(ctx, err)
}

// helpLine renders a row as a line of help. The line of a row of another project contains its
// project.
func (a *assistant) helpLine(r *search.RelatedRow) ledger.Line {
	kind := r.ObsType
	if r.Project != a.project.ID {
		kind += " [" + oneline.Cell(r.Project, ledger.MaxCell) + "]"
	}
	return ledger.Line{ID: r.ID, Text: fmt.Sprintf("| #%d | %s | %s | %s |", r.ID, oneline.Ago(a.now, r.At), kind, oneline.Cell(r.Excerpt, search.MaxRelatedExcerpt))}
}

const selectProjectNames = `SELECT key, id, name, ifnull(origin_url, '') FROM projects LIMIT 1000`

// findNear returns the projects whose rows may help. The project itself is always one of them.
// Unless the context leaves out other projects, projects with the same owner of the remote are
// included. So are projects whose names contain all words of the project's name, or the reverse.
func (a *assistant) findNear(ctx context.Context, tx *store.Tx) (map[int64]string, error) {
	near := map[int64]string{a.project.Key: a.project.ID}
	if a.service.Config.Limits.SuppressCross {
		return near, nil
	}
	type named struct {
		id, remote string
		words      map[string]bool
	}
	all := map[int64]named{}
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		var key int64
		var p named
		var name string
		err := rows.Scan(&key, &p.id, &name, &p.remote)
		p.words = likely.WordSet(name)
		all[key] = p
		return err
	}, selectProjectNames)
	own := all[a.project.Key]
	owner := observation.RemoteOwner(own.remote)
	for key, p := range all {
		if owner != "" && owner == observation.RemoteOwner(p.remote) || contains(own.words, p.words) || contains(p.words, own.words) {
			near[key] = p.id
		}
	}
	return near, err
}

// contains reports whether words contains all of some. It is false if some is empty.
func contains(words, some map[string]bool) bool {
	for w := range some {
		if !words[w] {
			return false
		}
	}
	return len(some) > 0
}

// lastTurn returns the prompt with which the previous turn began, or the present prompt if it is
// the session's first.
func (a *assistant) lastTurn(ctx context.Context, tx *store.Tx) (since int64, err error) {
	since, err = observation.LookUp(ctx, tx, selectLastTurn, a.session, a.own)
	return cmp.Or(since, a.own), err
}
