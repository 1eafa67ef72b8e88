package capture

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// recordPrompt stores a text of a user or an agent: a prompt, and the row that makes it
// searchable (observations §6).
func (w *writing) recordPrompt(ctx context.Context, tx *store.Tx, d draft) error {
	e := &w.event
	source := "agent"
	if e.Kind == observation.Prompt {
		source = "user"
	}
	if id, err := w.knownPrompt(ctx, tx, d); err != nil || id != 0 {
		if err == nil {
			w.done.Known++
			_, err = tx.Exec(ctx, fillPrompt, observation.NullText(e.PromptID), observation.NullText(e.AgentID), observation.NullText(e.LineID), id)
		}
		return err
	}
	res, err := tx.Exec(ctx, insertPrompt, w.session.Key, w.at, source,
		observation.NullText(e.PromptID), observation.NullText(e.AgentID), observation.NullText(e.LineID))
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	if source == "user" && e.PromptID != "" {
		if _, err := tx.Exec(ctx, claimRows, id, w.session.Key, e.PromptID); err != nil {
			return err
		}
	}
	w.prompt = sql.NullInt64{Int64: id, Valid: true}
	_, err = w.insert(ctx, tx, d)
	return err
}

// knownPrompt returns the stored prompt that this event repeats, 0 if there is none. It compares
// the harness's prompt id, the transcript line, the id and words of a copied session, or the
// words at nearly the same time. Two live events are different unless their ids and their words
// are equal, because a prompt sent during a turn has the same id as the turn's prompt. A hook
// and a transcript may report a compaction's summary in different words.
func (w *writing) knownPrompt(ctx context.Context, tx *store.Tx, d draft) (int64, error) {
	e := &w.event
	if e.Kind == observation.Prompt && e.PromptID != "" {
		if id, err := w.promptOfTurn(ctx, tx, d); err != nil || id != 0 {
			return id, err
		}
	}
	if e.LineID != "" {
		if id, err := observation.LookUp(ctx, tx, selectPromptByLine, e.LineID); err != nil || id != 0 {
			return id, err
		}
	}
	if e.Imported && e.PromptID != "" {
		id, err := observation.LookUp(ctx, tx, selectCopiedPrompt, w.project.Key, d.Type, w.at-observation.CopyTwin, w.at+observation.CopyTwin,
			d.Content, e.PromptID, w.session.Key)
		if err != nil || id != 0 {
			return id, err
		}
	}
	if e.Role == observation.RoleSummary {
		return observation.LookUp(ctx, tx, selectSummaryNear, w.session.Key, w.at-observation.MarkTwin, w.at+observation.MarkTwin)
	}
	if e.Match != observation.MatchID && e.LineID != "" {
		return w.sameWords(ctx, tx, d)
	}
	return observation.LookUp(ctx, tx, selectPromptByText, w.session.Key, w.at-observation.PromptTwin, w.at+observation.PromptTwin, d.Type, d.Content, e.Imported)
}

// promptOfTurn returns the prompt with the event's prompt id. If that prompt was purged, or is
// live with other words, a live event is a prompt sent during the turn. Its id is then removed
// and the result is 0.
func (w *writing) promptOfTurn(ctx context.Context, tx *store.Tx, d draft) (int64, error) {
	id, err := observation.LookUp(ctx, tx, selectPromptByHarness, w.session.Key, w.event.PromptID)
	if err != nil || w.event.Imported {
		return id, err
	}
	if id == 0 {
		purged, err := w.tombstones.Holds(ctx, tx, w.at, observation.PromptKey(w.event.Session, w.event.PromptID))
		if purged {
			w.event.PromptID = ""
		}
		return 0, err
	}
	other, err := observation.LookUp(ctx, tx, selectOtherLivePrompt, id, d.Content)
	if err != nil || other == 0 {
		return id, err
	}
	w.event.PromptID = ""
	return 0, nil
}

// findParent sets the prompt that caused the rows of this event. This is the prompt with the
// event's prompt id. If there is none, the newest prompt without an id gets that id. If the
// event has no prompt id, the parent is the newest prompt. If the parent was purged, the rows
// have none.
func (w *writing) findParent(ctx context.Context, tx *store.Tx) error {
	e := &w.event
	if e.PromptID == "" {
		id, err := w.newestPrompt(ctx, tx, true)
		w.prompt = sql.NullInt64{Int64: id, Valid: id != 0}
		return err
	}
	var id int64
	err := tx.Get(ctx, []any{&id}, selectPromptByHarness, w.session.Key, e.PromptID)
	if err == nil {
		w.prompt = sql.NullInt64{Int64: id, Valid: true}
		return nil
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if gone, err := w.tombstones.Holds(ctx, tx, w.at, observation.PromptKey(e.Session, e.PromptID)); gone || err != nil {
		return err
	}
	if id, err = w.newestPrompt(ctx, tx, false); err != nil || id == 0 {
		return err
	}
	w.prompt = sql.NullInt64{Int64: id, Valid: true}
	_, err = tx.Exec(ctx, adoptPrompt, e.PromptID, id)
	return err
}

// newestPrompt returns the prompt of a row without a prompt id, 0 if there is none. For an
// imported row it is the latest prompt up to the row's time. For a live row it is the live
// prompt stored last, even if the clock was set back, else the latest prompt. Unless named is
// true, only prompts without an id count.
func (w *writing) newestPrompt(ctx context.Context, tx *store.Tx, named bool) (int64, error) {
	until := w.at
	if !w.event.Imported {
		id, err := observation.LookUp(ctx, tx, selectNewestLivePrompt, w.session.Key, named)
		if err != nil || id != 0 {
			return id, err
		}
		until = math.MaxInt64
	}
	return observation.LookUp(ctx, tx, selectNewestPrompt, w.session.Key, named, until)
}
