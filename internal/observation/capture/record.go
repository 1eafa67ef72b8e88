package capture

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/project"
	"cairn/internal/store"
)

const selectIsFirst = `SELECT NOT EXISTS (SELECT 1 FROM prompt_rows WHERE session_key = ?)`

// Record stores one live event in its own transaction. place is the location of its Cwd. process
// is the harness that sent it, for the rule of the current session; zero if unknown.
//
// It adds no row for events that have none, for a delivery that is already stored, and for an
// equal read or search within the window. The session's activity is updated anyway. The ledger
// is updated with what the event shows to be used of the injected context (observations §9.3).
// Nothing at all is stored for a delivery that was purged. Recording an event with a tool use id
// is idempotent. An event without one is never treated as a repetition (observations §5).
//
// Errors are those of store.Write. Nothing of the event is stored then.
func Record(ctx context.Context, svc *observation.Service, e observation.Event, place project.Location, process project.Process) (done observation.Recorded, err error) {
	rows := drafts(&e, svc.Config.Filter)
	keepOutputs(svc, rows)
	e.Branch, _ = svc.Config.Filter.Head(e.Branch, maxFact)
	err = svc.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		w := &writing{event: e, place: place, window: int64(svc.Config.DedupWindow.Seconds()), at: tx.Now().Unix()}
		if err := w.record(ctx, tx, rows, process); err != nil {
			return err
		}
		if w.session.Key == 0 {
			done = w.done
			return nil
		}
		w.done.Unnoted = ledger.NoteUse(ctx, tx, &e, w.session.Key)
		done = w.done
		if !e.TurnEnds && e.Kind != observation.SessionEnd {
			return nil
		}
		if _, _, err := observation.IndexSession(ctx, tx, w.session.Key, observation.TurnRowsInHook, false); err != nil {
			return err
		}
		return observation.WriteDigest(ctx, tx, w.session)
	})
	return done, err
}

// writing is the state of storing one event.
type writing struct {
	event   observation.Event
	place   project.Location
	at      int64 // Unix seconds
	window  int64 // of deduplication, seconds
	session project.Session
	project project.Project // of this event's working directory
	prompt  sql.NullInt64   // the rows' parent
	counts  sessionCounts   // of the imported transcript; zero for a live event
	done    observation.Recorded

	tombstones observation.Tombstones // zero if tombstones are ignored
	absent     map[string][]string    // project ids of sessions with skipped purged events; nil when live
}

func (w *writing) record(ctx context.Context, tx *store.Tx, rows []draft, process project.Process) error {
	if !w.event.At.IsZero() {
		w.at = w.event.At.Unix()
	}
	var err error
	if w.tombstones, err = observation.OpenTombstones(ctx, tx); err != nil {
		return err
	}
	rows, gone, err := w.dropPurged(ctx, tx, rows)
	if gone || err != nil {
		return err
	}
	if err := w.findSession(ctx, tx, process); err != nil {
		return err
	}
	return w.store(ctx, tx, rows)
}

// findSession finds or creates the event's session and project.
func (w *writing) findSession(ctx context.Context, tx *store.Tx, process project.Process) error {
	e := &w.event
	ses, q, err := project.RecordSession(ctx, tx, project.SessionEvent{
		ID: e.Session, Place: w.place, Harness: e.Harness, Model: e.Model, At: w.at,
		PID: process.PID, PIDStart: process.Start,
		Ends: e.Kind == observation.SessionEnd || e.TurnEnds, Closes: e.Kind == observation.SessionEnd, Begins: e.Kind == observation.SessionStart || e.Kind == observation.Prompt,
		Replaces: e.Kind == observation.SessionStart && observation.IsRecovery(e.Text), Imported: e.Imported,
	})
	w.setSession(ses, q)
	return err
}

// setSession sets the session and the project of the event.
func (w *writing) setSession(s project.Session, q project.Project) {
	w.session, w.project = s, q
	w.done.Project, w.done.Session = q, s.Key
	w.place = w.place.Within(q)
}

// store adds the rows of the event.
func (w *writing) store(ctx context.Context, tx *store.Tx, rows []draft) error {
	if err := w.keepBranch(ctx, tx); err != nil || len(rows) == 0 {
		return err
	}
	switch w.event.Kind {
	case observation.Prompt, observation.Message:
		if w.event.Kind == observation.Prompt {
			if err := tx.Get(ctx, []any{&w.done.First}, selectIsFirst, w.session.Key); err != nil {
				return err
			}
		}
		return w.recordPrompt(ctx, tx, rows[0])
	case observation.Tool:
		return w.recordCalls(ctx, tx, rows)
	default:
		return w.recordMark(ctx, tx, rows[0])
	}
}

// keepBranch records the branch of an event that begins or ends a turn, or begins a session.
func (w *writing) keepBranch(ctx context.Context, tx *store.Tx) error {
	e := &w.event
	if e.Branch == "" || !e.KeepsBranch() {
		return nil
	}
	return observation.AddBranch(ctx, tx, e.Branch, w.session.Key)
}

// recordMark stores the row of a session's start, compaction or end. An imported mark is known
// if the session has an equal row at nearly the same time.
func (w *writing) recordMark(ctx context.Context, tx *store.Tx, d draft) error {
	if w.event.Imported {
		var id int64
		err := tx.Get(ctx, []any{&id}, selectRecentTwin, w.session.Key, w.at-observation.MarkTwin, w.at+observation.MarkTwin, d.Type, nil, d.Content)
		if err == nil {
			w.done.Known++
			return nil
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	_, err := w.insert(ctx, tx, d)
	return err
}

func (w *writing) recordCalls(ctx context.Context, tx *store.Tx, rows []draft) error {
	if err := w.findParent(ctx, tx); err != nil {
		return err
	}
	for _, d := range rows {
		known, err := w.known(ctx, tx, d)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if _, err := w.insert(ctx, tx, d); err != nil {
			return err
		}
	}
	return nil
}

// known reports whether a call is not to be inserted. That is the case for an earlier delivery
// of the call, a copy of an imported call in another session, and an equal recent read or
// search.
func (w *writing) known(ctx context.Context, tx *store.Tx, d draft) (bool, error) {
	n, err := w.count(ctx, tx, d)
	if err != nil {
		return false, err
	}
	var id int64
	if d.CallID != "" {
		id, err := observation.CallRow(ctx, tx, d.CallID, w.session.Key, d.Part)
		if err != nil {
			return false, err
		}
		if id != 0 {
			w.done.Known++
			if err := keepLines(ctx, tx, id, d.lines); err != nil {
				return false, err
			}
			if err := w.correctOutcome(ctx, tx, id, d); err != nil {
				return false, err
			}
			return true, w.fill(ctx, tx, id)
		}
		if w.event.Imported {
			id, err = observation.LookUp(ctx, tx, selectCopiedCall, d.CallID, d.Part, d.Content, w.at-observation.CopyTwin, w.at+observation.CopyTwin)
			if err != nil {
				return false, err
			}
			if id != 0 {
				w.done.Known++
				return true, nil
			}
		}
	}
	if n.nth > 0 {
		return w.isEqual(ctx, tx, d, n)
	}
	if w.window == 0 || !observation.IsRepeatable(d.Type, d.Failed) {
		return false, nil
	}
	err = tx.Get(ctx, []any{&id}, selectRecentTwin, w.session.Key, w.at-w.window, w.at, d.Type, w.pathKey(d), d.Content)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil {
		w.done.Deduped++
	}
	return true, err
}

// fill sets those columns of a known row that its first source left empty. It sets the parent
// only if nothing was purged, because the missing parent may be a purged prompt.
func (w *writing) fill(ctx context.Context, tx *store.Tx, id int64) error {
	parent := w.prompt
	if w.tombstones.Any() {
		parent = sql.NullInt64{}
	}
	agent, prompt := observation.NullText(w.event.AgentID), observation.NullText(w.event.PromptID)
	_, err := tx.Exec(ctx, fillRow, parent, agent, prompt, id, parent, agent, prompt)
	return err
}

// pathKey returns the path key of a row's file, nil if the row has no path.
func (w *writing) pathKey(d draft) any {
	if d.Path == "" {
		return nil
	}
	return w.place.PathKey(d.Path)
}

// insert stores one row with its searchable words, output, lines and change.
func (w *writing) insert(ctx context.Context, tx *store.Tx, d draft) (int64, error) {
	path := ""
	if d.Path != "" {
		path = w.place.Absolute(d.Path)
	}
	meta, err := d.Meta.Text()
	if err != nil {
		return 0, err
	}
	row := observation.Text{At: w.at, ObsType: d.Type, Source: w.event.Source, Tool: d.Tool, Content: d.Content, Path: path, Meta: meta}
	res, err := tx.Exec(ctx, insertRow, w.at, w.session.Key, w.project.Key, w.prompt, d.Type, w.event.Source,
		observation.NullText(d.Tool), d.Content, observation.NullText(path), w.pathKey(d), observation.NullText(meta), observation.NullText(d.CallID), d.Part,
		observation.NullText(w.event.AgentID), observation.NullText(w.event.PromptID), row.Checksum())
	if err != nil {
		return 0, err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return 0, err
	}
	if err := observation.IndexText(ctx, tx, id, d.searchable()); err != nil {
		return 0, err
	}
	if err := d.output.Insert(ctx, tx, id); err != nil {
		return 0, err
	}
	if err := keepLines(ctx, tx, id, d.lines); err != nil {
		return 0, err
	}
	if err := observation.NoteTurn(ctx, tx, w.session.Key, w.at, id, d.Type == observation.TypePrompt && !w.event.At.IsZero()); err != nil {
		return 0, err
	}
	w.done.IDs, w.done.Types = append(w.done.IDs, id), append(w.done.Types, d.Type)
	return id, w.logRow(ctx, tx, id)
}

// logRow appends the change of a new or changed row to the log.
func (w *writing) logRow(ctx context.Context, tx *store.Tx, id int64) error {
	_, err := tx.Append(ctx, store.Change{
		Project: w.project.ID, Stream: "session/" + w.session.ID, Kind: "observation",
		ID: strconv.FormatInt(id, 10), Op: store.OpPut,
	})
	return err
}
