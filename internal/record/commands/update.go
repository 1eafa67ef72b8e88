package commands

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"cairn/internal/linediff"
	"cairn/internal/record"
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
func (b *Commands) Update(ctx context.Context, a record.UpdateArgs) (out record.Updated, err error) {
	metadata, err := checkUpdate(&a)
	if err != nil {
		return out, err
	}
	var origin *record.Record // common version of both sides of a conflict, if their bodies must be merged
	err = b.Write(ctx, a.Caller, func(ctx context.Context, s *record.CallTx) error {
		origin = nil
		r, m, base, err := activeRecord(ctx, s, a.Caller, a.ID)
		if err != nil {
			return err
		}
		next, err := withUpdate(ctx, s, r, &a, metadata)
		if err != nil {
			return err
		}
		out = record.Updated{Record: r.Record}
		if sameText(&next, &r.Record) {
			return nil
		}
		next.Version, next.Modified = r.Version+1, record.Time(s.Tx.Now().UnixNano())
		forced := r.Version > base
		if forced && !a.Force {
			if a.Body != nil {
				old, err := s.Version(ctx, r.ID, base)
				if err != nil {
					return err
				}
				origin = &old
			}
			out.Conflict, err = reportConflict(ctx, s, m, r, next, base)
			return err
		}
		if forced {
			if err := s.PutEvent(ctx, m, record.Event{
				Type: record.ConflictResolved, RecordID: r.ID,
				Summary: fmt.Sprintf("%s: version %d was overridden by one made from version %d", r.ID, r.Version, base),
			}); err != nil {
				return err
			}
		}
		out.Record = next
		return s.PutEntry(ctx, m, &record.Entry{Record: next, Event: record.RecordUpdated, Forced: forced, Base: next.Version})
	})
	if err == nil && origin != nil { // may take seconds, so it runs outside the transaction
		if merged, ok := linediff.Merge(origin.Body, out.Record.Body, out.Conflict.YourVersion.Body); ok {
			out.Conflict.MergedBody = &merged
		}
	}
	return out, err
}

func checkUpdate(a *record.UpdateArgs) (metadata map[string]any, err error) {
	if a.Title == nil && a.Summary == nil && a.Body == nil && a.Related == nil && a.Metadata == nil {
		return nil, record.Invalid("title", "an update needs at least one of title, summary, body, related and metadata")
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

// activeRecord returns a record that the caller's session has loaded, with its base version.
func activeRecord(ctx context.Context, s *record.CallTx, c record.Caller, id string) (r record.Stored, m *record.Session, base int, err error) {
	if r, err = s.MustFind(ctx, id); err != nil {
		return r, nil, 0, err
	}
	if m, err = s.Member(ctx, c); err != nil {
		return r, nil, 0, err
	}
	if !m.IsOpen() {
		return r, m, 0, notActivated(r.ID)
	}
	err = s.Tx.Get(ctx, []any{&base}, selectBase, s.Project.Key, r.Number, m.Key)
	if errors.Is(err, sql.ErrNoRows) {
		err = notActivated(r.ID)
	}
	return r, m, base, err
}

// withUpdate returns the record after an update.
func withUpdate(ctx context.Context, s *record.CallTx, r record.Stored, a *record.UpdateArgs, metadata map[string]any) (next record.Record, err error) {
	next = r.Record
	if a.Title != nil {
		next.Title = s.Line(*a.Title, maxTitle)
	}
	if a.Summary != nil {
		next.Summary = s.Line(*a.Summary, maxSummary)
	}
	if a.Body != nil {
		if body := s.Text(*a.Body); body != r.Body {
			next.Body, next.Cited = body, a.Cited
		}
	}
	if a.Related != nil {
		if next.Related, err = checkRelated(ctx, s, a.Related, r.Number); err != nil {
			return next, err
		}
	}
	if a.Metadata != nil {
		old, err := record.DecodeObject(r.Metadata)
		if err != nil {
			return next, err
		}
		delete(metadata, reasonKey)
		if next.Metadata, err = metadataWith(s.Config.Filter, metadata, old[reasonKey]); err != nil {
			return next, err
		}
	}
	return next, nil
}

func sameText(a, b *record.Record) bool {
	return a.Title == b.Title && a.Summary == b.Summary && a.Body == b.Body &&
		slices.Equal(a.Related, b.Related) && string(a.Metadata) == string(b.Metadata)
}

// reportConflict logs and describes the conflict with a version above base that another session
// stored. It does not merge bodies.
func reportConflict(ctx context.Context, s *record.CallTx, m *record.Session, r record.Stored, mine record.Record, base int) (*record.Conflict, error) {
	by, err := s.VersionAbove(ctx, r.ID, base)
	if err != nil {
		return nil, err
	}
	c := &record.Conflict{
		Message: fmt.Sprintf("session %s stored version %d of %s after this session had loaded version %d; "+
			"nothing was written. Show both versions to the user, then update with force", by.Session, r.Version, r.ID, base),
		OtherVersion: r.Record, YourVersion: mine, BaseVersion: base,
	}
	return c, s.PutEvent(ctx, m, record.Event{
		Type: record.ConflictDetected, RecordID: r.ID, Holders: []string{by.Session},
		Summary: fmt.Sprintf("%s: an update made from version %d met version %d", r.ID, base, r.Version),
	})
}
