package capture

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"cairn/internal/observation"
	"cairn/internal/store"
)

// recordPrompt stores what a user or an agent said: a prompt and, next to it, the
// row that makes it searchable (observations §6).
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

// knownPrompt finds the prompt that this event tells again: by the harness's
// prompt id, the transcript line, the same id and words in the session it was
// copied from, or the same words at nearly the same time. Two live events are
// never the same one, unless they carry the same id and the same words: what is
// sent while a turn goes on shares the id of the turn's prompt. Of a
// compaction's summary hook and transcript may tell different words.
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

// promptOfTurn finds the prompt that carries the event's prompt id. If that was
// live and said something else, or was purged, the event is a prompt sent while the
// turn went on: it keeps no id.
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

// findParent sets the prompt that caused the rows of this event: the one with
// the payload's prompt id; if none has it, the newest without an id takes it;
// without an id in the payload, the newest. One that was purged is none.
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

// newestPrompt is the prompt to which a row without another hint belongs, 0 if there
// is none: of an imported row the latest before it, of a live one the live prompt
// that was stored last, which a clock that steps back does not hide, failing that
// the latest. Unless named is true, only prompts without an id count.
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
