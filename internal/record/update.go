package record

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"cairn/internal/linediff"
)

const selectBase = `SELECT base_version FROM activations WHERE project_key = ? AND number = ? AND session_key = ?`

// Update changes an active record (records §2, update_record). It costs a tick and moves
// the session's base version. An update without a difference succeeds and stores nothing.
// If another session has stored a version that this one has not loaded, nothing is
// written and the result has a Conflict. With Force the update is stored, and the other
// version stays in the history. It is idempotent.
//
// Errors: CodeInvalid, also if no field is given, CodeNotFound, also for related ids,
// CodeNotActivated.
func (b *Service) Update(ctx context.Context, a UpdateArgs) (out Updated, err error) {
	metadata, err := a.check()
	if err != nil {
		return out, err
	}
	var origin *Record // common version of both sides of a conflict, if their bodies must be merged
	err = b.write(ctx, a.Caller, func(ctx context.Context, s *callTx) error {
		origin = nil
		r, m, base, err := s.active(ctx, a.Caller, a.ID)
		if err != nil {
			return err
		}
		next, err := s.changed(ctx, r, &a, metadata)
		if err != nil {
			return err
		}
		out = Updated{Record: r.Record}
		if sameText(&next, &r.Record) {
			return nil
		}
		next.Version, next.Modified = r.Version+1, Time(s.tx.Now().UnixNano())
		forced := r.Version > base
		if forced && !a.Force {
			if a.Body != nil {
				old, err := s.version(ctx, r.ID, base)
				if err != nil {
					return err
				}
				origin = &old
			}
			out.Conflict, err = s.conflict(ctx, m, r, next, base)
			return err
		}
		if forced {
			if err := s.event(ctx, m, Event{
				Type: ConflictResolved, RecordID: r.ID,
				Summary: fmt.Sprintf("%s: version %d was overridden by one made from version %d", r.ID, r.Version, base),
			}); err != nil {
				return err
			}
		}
		out.Record = next
		return s.entry(ctx, m, &Entry{Record: next, Event: RecordUpdated, Forced: forced, Base: next.Version})
	})
	if err == nil && origin != nil { // may take seconds, so it runs outside the transaction
		if merged, ok := linediff.Merge(origin.Body, out.Record.Body, out.Conflict.YourVersion.Body); ok {
			out.Conflict.MergedBody = &merged
		}
	}
	return out, err
}

func (a *UpdateArgs) check() (metadata map[string]any, err error) {
	if a.Title == nil && a.Summary == nil && a.Body == nil && a.Related == nil && a.Metadata == nil {
		return nil, invalid("title", "an update needs at least one of title, summary, body, related and metadata")
	}
	if a.Title != nil {
		title, err := checkTitle(*a.Title)
		if err != nil {
			return nil, err
		}
		a.Title = &title
	}
	if a.Summary != nil {
		if err := checkText("summary", *a.Summary, maxSummary); err != nil {
			return nil, err
		}
	}
	if a.Body != nil {
		if err := checkBody(*a.Body); err != nil {
			return nil, err
		}
	}
	return checkMetadata(a.Metadata)
}

// active returns a record that the caller's session has loaded, with its base version.
func (s *callTx) active(ctx context.Context, c Caller, id string) (r stored, m *sessionState, base int, err error) {
	if r, err = s.mustFind(ctx, id); err != nil {
		return r, nil, 0, err
	}
	if m, err = s.member(ctx, c); err != nil {
		return r, nil, 0, err
	}
	if !m.isOpen() {
		return r, m, 0, notActivated(r.ID)
	}
	err = s.tx.Get(ctx, []any{&base}, selectBase, s.p.Key, r.number, m.key)
	if errors.Is(err, sql.ErrNoRows) {
		err = notActivated(r.ID)
	}
	return r, m, base, err
}

// changed returns the record after an update.
func (s *callTx) changed(ctx context.Context, r stored, a *UpdateArgs, metadata map[string]any) (next Record, err error) {
	next = r.Record
	if a.Title != nil {
		next.Title = s.line(*a.Title, maxTitle)
	}
	if a.Summary != nil {
		next.Summary = s.line(*a.Summary, maxSummary)
	}
	if a.Body != nil {
		if body := s.text(*a.Body); body != r.Body {
			next.Body, next.Cited = body, a.Cited
		}
	}
	if a.Related != nil {
		if next.Related, err = s.checkRelated(ctx, a.Related, r.number); err != nil {
			return next, err
		}
	}
	if a.Metadata != nil {
		old, err := decodeObject(r.Metadata)
		if err != nil {
			return next, err
		}
		delete(metadata, reasonKey)
		if next.Metadata, err = s.metadata(metadata, old[reasonKey]); err != nil {
			return next, err
		}
	}
	return next, nil
}

func sameText(a, b *Record) bool {
	return a.Title == b.Title && a.Summary == b.Summary && a.Body == b.Body &&
		slices.Equal(a.Related, b.Related) && string(a.Metadata) == string(b.Metadata)
}

// conflict logs and describes the conflict with a version above base that another session
// stored. It does not merge bodies.
func (s *callTx) conflict(ctx context.Context, m *sessionState, r stored, mine Record, base int) (*Conflict, error) {
	by, err := s.versionAbove(ctx, r.ID, base)
	if err != nil {
		return nil, err
	}
	c := &Conflict{
		Message: fmt.Sprintf("session %s stored version %d of %s after this session had loaded version %d; "+
			"nothing was written. Show both versions to the user, then update with force", by.session, r.Version, r.ID, base),
		OtherVersion: r.Record, YourVersion: mine, BaseVersion: base,
	}
	return c, s.event(ctx, m, Event{
		Type: ConflictDetected, RecordID: r.ID, Holders: []string{by.session},
		Summary: fmt.Sprintf("%s: an update made from version %d met version %d", r.ID, base, r.Version),
	})
}
