package capture

import (
	"context"
	"math"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// dropPurged removes the purged rows of an event before anything is written. gone reports that
// nothing remains to be stored. Only an imported event can belong to a purged session or
// project, because live events are newer than the purge.
func (w *writing) dropPurged(ctx context.Context, tx *store.Tx, rows []draft) (kept []draft, gone bool, err error) {
	if !w.tombstones.Any() {
		return rows, false, nil
	}
	place := w.place
	if w.event.Imported {
		own, ids, err := w.likelyProject(ctx, tx)
		if err != nil {
			return nil, false, err
		}
		if gone, err := w.isPurgedWhole(ctx, tx, ids); gone || err != nil {
			w.done.Purged += len(rows)
			return nil, true, err
		}
		place = place.Within(own)
	}
	for _, d := range rows {
		gone, err := w.tombstones.Holds(ctx, tx, math.MinInt64, w.keys(d, place)...)
		switch {
		case err != nil:
			return nil, false, err
		case gone:
			w.done.Purged++
		default:
			kept = append(kept, d)
		}
	}
	return kept, len(rows) > 0 && len(kept) == 0, nil
}

// isPurgedWhole reports whether the event's session or one of the projects, given by their ids,
// was purged.
func (w *writing) isPurgedWhole(ctx context.Context, tx *store.Tx, projects []string) (bool, error) {
	id := w.event.Session
	keys := []observation.TombstoneKey{observation.SessionKey(id)}
	for _, p := range projects {
		keys = append(keys, observation.ProjectKey(p), observation.SessionInProjectKey(id, p))
	}
	gone, err := w.tombstones.Holds(ctx, tx, w.at, keys...)
	if gone && err == nil && len(projects) > 0 && w.absent != nil {
		w.absent[id] = projects
	}
	return gone, err
}

// likelyProject returns the project for the event's row, and all ids under which it may have
// been purged. Both are empty if the location has no project. Outside any repository it is the
// project of the event's session, even if the session's first events were purged.
func (w *writing) likelyProject(ctx context.Context, tx *store.Tx) (own project.Project, ids []string, err error) {
	if w.place.Identity == "" {
		s, ok, err := project.FindSession(ctx, tx, w.event.Session)
		if err != nil || ok {
			if err == nil {
				own, _, err = project.Find(ctx, tx, s.ProjectID)
			}
			return own, []string{s.ProjectID}, err
		}
		if ids := w.absent[w.event.Session]; ids != nil {
			own, _, err = project.Find(ctx, tx, ids[0])
			return own, ids, err
		}
	}
	return project.CurrentWithIDs(ctx, tx, w.place)
}

// keys returns the possible tombstone keys of a row in this location.
func (w *writing) keys(d draft, place project.Location) (keys []observation.TombstoneKey) {
	e := &w.event
	switch {
	case d.CallID != "":
		keys = append(keys, observation.CallKey(e.Session, d.CallID, d.Part))
		if e.Imported {
			keys = append(keys, observation.CopyKey(d.CallID, d.Part, d.Content))
			keys = append(keys, w.equalCallKeys(d, place)...)
		}
		return keys
	case e.Kind == observation.Prompt && e.PromptID != "" && e.Imported:
		keys = append(keys, observation.PromptKey(e.Session, e.PromptID))
	case e.Kind == observation.Prompt && e.PromptID != "":
		keys = append(keys, observation.SamePromptKey(e.Session, e.PromptID, d.Content))
	}
	if e.LineID != "" {
		keys = append(keys, observation.LineKey(e.LineID))
	}
	if e.Imported {
		keys = append(keys, w.contentKeys(d, place)...)
	}
	return keys
}

// contentKeys returns the keys of an imported row without ids, by its content and time.
func (w *writing) contentKeys(d draft, place project.Location) []observation.TombstoneKey {
	e := &w.event
	switch {
	case observation.IsAction(d.Type):
		return w.equalCallKeys(d, place)
	case e.Match == observation.MatchID || e.Role == observation.RoleSummary || e.Kind != observation.Prompt && e.Kind != observation.Message:
		return observation.Around(e.Session, d.Type, d.Content, e.Role, w.at)
	}
	words := observation.Wording(d.Content)
	if d.Type == observation.TypePrompt {
		words = d.Content
	}
	return w.steps(observation.Width(d.Type, e.Role), func(step int64) observation.TombstoneKey {
		return observation.WordsKey(e.Session, d.Type, words, step)
	})
}

// equalCallKeys returns the keys of a call by what it did.
func (w *writing) equalCallKeys(d draft, place project.Location) []observation.TombstoneKey {
	if w.event.Match == observation.MatchID && !observation.IsRepeatable(d.Type, d.Failed) {
		return nil
	}
	path := ""
	if d.Path != "" {
		path = place.PathKey(d.Path)
	}
	like := d.equalityKey(path)
	return w.steps(observation.EqualCallStep(d.Type, d.Failed), func(step int64) observation.TombstoneKey {
		return observation.EqualCallKey(w.event.Session, like, step)
	})
}

// steps returns the keys for all times that a delivery of the event may have.
func (w *writing) steps(width int64, key func(step int64) observation.TombstoneKey) (keys []observation.TombstoneKey) {
	if w.event.Match == observation.MatchText {
		return []observation.TombstoneKey{key(observation.AnyTime)}
	}
	for step := w.at/width - 1; step <= w.at/width+1; step++ {
		keys = append(keys, key(step))
	}
	return keys
}
