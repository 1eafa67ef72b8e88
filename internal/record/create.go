package record

import (
	"context"
	"fmt"

	"cairn/internal/fault"
)

const (
	selectLastNumber = `SELECT last_record FROM projects WHERE key = ?`
	selectIsActive   = `SELECT EXISTS (SELECT 1 FROM activations WHERE project_key = ? AND number = ? AND session_key = ?)`
)

// draft is the text of a new or changed record, validated and redacted.
type draft struct {
	kind, title, summary, body string
	metadata                   map[string]any
}

func (b *Service) draft(a *CreateArgs) (d draft, err error) {
	if d.title, err = checkTitle(a.Title); err != nil {
		return d, err
	}
	if d.metadata, err = checkMetadata(a.Metadata); err != nil {
		return d, err
	}
	for _, err := range [...]error{
		checkType(a.Type), checkText("summary", a.Summary, maxSummary), checkBody(a.Body), checkState("state", a.State),
	} {
		if err != nil {
			return d, err
		}
	}
	if a.ParentID != nil && *a.ParentID == "" {
		return d, invalid("parent_id", "parent_id must be a record's id, or null for a root")
	}
	d.kind, d.title, d.summary, d.body = b.line(a.Type, maxType), b.line(d.title, maxTitle), b.line(a.Summary, maxSummary), b.text(a.Body)
	return d, nil
}

// Create stores a new record below an active one, or as a root (records §2,
// create_record). It activates the record in the caller's session, which it creates if
// necessary. It costs a tick. It is not idempotent: each call creates a record.
//
// Errors: CodeInvalid, CodeNotFound for the parent and for related ids,
// CodeParentNotActivated, CodeDepth.
func (b *Service) Create(ctx context.Context, a CreateArgs) (out Created, err error) {
	if a.State == "" {
		a.State = Open
	}
	d, err := b.draft(&a)
	if err != nil {
		return out, err
	}
	err = b.write(ctx, a.Caller, func(ctx context.Context, s *callTx) error {
		parent, err := s.checkParent(ctx, &a)
		if err != nil {
			return err
		}
		related, err := s.checkRelated(ctx, a.Related, 0)
		if err != nil {
			return err
		}
		metadata, err := b.metadata(d.metadata, nil)
		if err != nil {
			return err
		}
		var last int64
		if err := s.tx.Get(ctx, []any{&last}, selectLastNumber, s.p.Key); err != nil {
			return err
		}
		if last+1 >= 1_000_000_000 {
			return fault.New(fault.Unavailable, CodeUnavailable, "the project has no free record id left")
		}
		m, err := s.open(ctx, a.Caller)
		if err != nil {
			return err
		}
		now := Time(s.tx.Now().UnixNano())
		e := &Entry{Event: RecordCreated, Base: 1, Record: Record{
			ID: formatID(last + 1), Type: d.kind, Title: d.title, Summary: d.summary, Body: d.body, State: a.State,
			ParentID: parent, Created: now, Modified: now, Related: related, Metadata: metadata, Version: 1, Cited: a.Cited,
		}}
		out = Created{Record: e.Record, AutoActivated: true}
		return s.entry(ctx, m, e)
	})
	return out, err
}

// checkParent returns the parent's id in its usual form, nil for a root.
func (s *callTx) checkParent(ctx context.Context, a *CreateArgs) (*string, error) {
	if a.ParentID == nil {
		return nil, nil
	}
	number, err := s.mustExist(ctx, *a.ParentID)
	if err != nil {
		return nil, err
	}
	id := formatID(number)
	m, err := s.member(ctx, a.Caller)
	if err != nil {
		return nil, err
	}
	active, err := s.isActive(ctx, m, number)
	if err != nil {
		return nil, err
	}
	if !active {
		return nil, parentNotActivated(id)
	}
	var path []byte
	if err := s.tx.Get(ctx, []any{&path}, selectPath, s.p.Key, number); err != nil {
		return nil, err
	}
	if len(path)/4+1 > s.config.MaxDepth {
		return nil, fail(fault.Invalid, CodeDepth, fmt.Sprintf("%s is at depth %d, the maximum depth of the tree", id, len(path)/4),
			"consider flattening: create it below a record further up", map[string]any{"max_depth": s.config.MaxDepth})
	}
	return &id, nil
}

// isActive reports whether an open session has loaded a record.
func (s *callTx) isActive(ctx context.Context, m *sessionState, number int64) (active bool, err error) {
	if !m.isOpen() {
		return false, nil
	}
	err = s.tx.Get(ctx, []any{&active}, selectIsActive, s.p.Key, number, m.key)
	return active, err
}
