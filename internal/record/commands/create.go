package commands

import (
	"context"
	"fmt"

	"cairn/internal/fault"
	"cairn/internal/record"
)

const selectIsActive = `SELECT EXISTS (SELECT 1 FROM activations WHERE project_key = ? AND number = ? AND session_key = ?)`

// draft is the text of a new or changed record, validated and redacted.
type draft struct {
	kind, title, summary, body string
	metadata                   map[string]any
}

func (b *Commands) draft(a *record.CreateArgs) (d draft, err error) {
	if d.title, err = checkTitle(a.Title); err != nil {
		return d, err
	}
	if d.metadata, err = checkMetadata(a.Metadata); err != nil {
		return d, err
	}
	for _, err := range [...]error{
		checkType(a.Type), checkText("summary", a.Summary, maxSummary), checkBody(a.Body), record.CheckState("state", a.State),
	} {
		if err != nil {
			return d, err
		}
	}
	if a.ParentID != nil && *a.ParentID == "" {
		return d, record.Invalid("parent_id", "parent_id must be a record's id, or null for a root")
	}
	d.kind, d.title, d.summary, d.body = b.Line(a.Type, maxType), b.Line(d.title, maxTitle), b.Line(a.Summary, maxSummary), b.Text(a.Body)
	return d, nil
}

// Create stores a new record below an active one, or as a root (records §2,
// create_record). It activates the record in the caller's session, which it creates if
// necessary. It costs a tick. It is not idempotent: each call creates a record.
//
// Errors: CodeInvalid, CodeNotFound for the parent and for related ids,
// CodeParentNotActivated, CodeDepth.
func (b *Commands) Create(ctx context.Context, a record.CreateArgs) (out record.Created, err error) {
	if a.State == "" {
		a.State = record.Open
	}
	d, err := b.draft(&a)
	if err != nil {
		return out, err
	}
	err = b.Write(ctx, a.Caller, func(ctx context.Context, s *record.CallTx) error {
		parent, err := checkParent(ctx, s, &a)
		if err != nil {
			return err
		}
		related, err := checkRelated(ctx, s, a.Related, 0)
		if err != nil {
			return err
		}
		metadata, err := metadataWith(b.Config.Filter, d.metadata, nil)
		if err != nil {
			return err
		}
		last, err := s.LastNumber(ctx)
		if err != nil {
			return err
		}
		if last+1 >= 1_000_000_000 {
			return fault.New(fault.Unavailable, record.CodeUnavailable, "the project has no free record id left")
		}
		m, err := s.Open(ctx, a.Caller)
		if err != nil {
			return err
		}
		now := record.Time(s.Tx.Now().UnixNano())
		e := &record.Entry{Event: record.RecordCreated, Base: 1, Record: record.Record{
			ID: record.FormatID(last + 1), Type: d.kind, Title: d.title, Summary: d.summary, Body: d.body, State: a.State,
			ParentID: parent, Created: now, Modified: now, Related: related, Metadata: metadata, Version: 1, Cited: a.Cited,
		}}
		out = record.Created{Record: e.Record, AutoActivated: true}
		return s.PutEntry(ctx, m, e)
	})
	return out, err
}

// checkParent returns the parent's id in its usual form, nil for a root.
func checkParent(ctx context.Context, s *record.CallTx, a *record.CreateArgs) (*string, error) {
	if a.ParentID == nil {
		return nil, nil
	}
	number, err := s.MustExist(ctx, *a.ParentID)
	if err != nil {
		return nil, err
	}
	id := record.FormatID(number)
	m, err := s.Member(ctx, a.Caller)
	if err != nil {
		return nil, err
	}
	active, err := isActive(ctx, s, m, number)
	if err != nil {
		return nil, err
	}
	if !active {
		return nil, parentNotActivated(id)
	}
	path, err := s.PathOf(ctx, &id, 0)
	if err != nil {
		return nil, err
	}
	if depth := len(path) / 4; depth > s.Config.MaxDepth {
		return nil, record.Fail(fault.Invalid, record.CodeDepth, fmt.Sprintf("%s is at depth %d, the maximum depth of the tree", id, depth-1),
			"consider flattening: create it below a record further up", map[string]any{"max_depth": s.Config.MaxDepth})
	}
	return &id, nil
}

// isActive reports whether an open session has loaded a record.
func isActive(ctx context.Context, s *record.CallTx, m *record.Session, number int64) (active bool, err error) {
	if !m.IsOpen() {
		return false, nil
	}
	err = s.Tx.Get(ctx, []any{&active}, selectIsActive, s.Project.Key, number, m.Key)
	return active, err
}
