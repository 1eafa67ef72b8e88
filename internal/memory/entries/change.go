package entries

import (
	"cmp"
	"context"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
)

// Patch contains the new values of PatchEntry. A nil field is not changed; at least one is set.
type Patch struct {
	Tags    map[string]string `json:"tags,omitzero"` // all tags; nil means unchanged
	Summary *string           `json:"summary,omitzero"`
}

// Correction contains the arguments of CorrectEntry.
type Correction struct {
	CorrectedEntryID string `json:"correctedEntryId"` // the committed entry that is correct instead
	Reason           string `json:"reason"`
}

// PatchEntry changes tags and summary of a committed entry. The change is visible here
// immediately.
//
// Errors: CodeNotCommitted (Conflict) for a localId, CodeNotFound, CodeInvalid,
// CodeImmutable (Conflict) for a corrected entry, CodeMismatch.
func (b *Entries) PatchEntry(ctx context.Context, c memory.Caller, memoryID, entry string, p Patch) (contents.Entry, memory.WriteInfo, error) {
	var invalidArg error
	if p.Tags == nil && p.Summary == nil {
		invalidArg = rules.Invalid("tags", "give tags or summary")
	}
	invalidArg = cmp.Or(invalidArg, rules.CheckTags(p.Tags))
	if p.Summary != nil {
		invalidArg = cmp.Or(invalidArg, rules.CheckLength("summary", *p.Summary, rules.MaxSummary))
		clean := b.Redact(*p.Summary)
		p.Summary = &clean
	}
	if p.Tags != nil {
		p.Tags = contents.RedactTags(b.Kernel, p.Tags)
	}
	do := func(ctx context.Context, s *memory.CallTx, e *contents.EntryRow, n memory.Issued) error {
		doc := contents.ChangeDoc{Key: n.Hub, EntryID: e.EntryID, Tags: p.Tags, Summary: p.Summary}
		doc.Apply(&e.Entry)
		if err := contents.Patch(ctx, s, e); err != nil {
			return err
		}
		return logPatch(ctx, s, e, doc)
	}
	return b.change(ctx, c, memoryID, entry, p, changing{method: "PATCH", invalid: invalidArg, do: do})
}

// logPatch logs a patch. The patch is not sent if the hub does not know the entry.
func logPatch(ctx context.Context, s *memory.CallTx, e *contents.EntryRow, doc contents.ChangeDoc) error {
	if s.User.IsJoined() && e.HubSeq == 0 && e.Seq <= s.Memory.AckedSeq {
		return s.Note(ctx, s.Memory.MemoryID, memory.KindEntry, e.EntryID, memory.OpPatch)
	}
	_, err := s.Log(ctx, memory.KindEntry, e.EntryID, memory.OpPatch, doc)
	return err
}

// CorrectEntry marks a committed entry as wrong and names the committed entry of the memory that
// is correct. An entry is corrected at most once. Errors are those of PatchEntry, CodeImmutable
// (Conflict) for a second correction, CodeInvalid if the target is the entry itself, CodeNotFound
// if it is not a committed entry of the memory.
func (b *Entries) CorrectEntry(ctx context.Context, c memory.Caller, memoryID, entry string, a Correction) (contents.Entry, memory.WriteInfo, error) {
	target, err := rules.UUIDArg("correctedEntryId", a.CorrectedEntryID)
	if err != nil {
		return contents.Entry{}, memory.WriteInfo{}, err
	}
	invalidArg := rules.CheckLength("reason", a.Reason, rules.MaxReason)
	if a.Reason == "" {
		invalidArg = rules.Invalid("reason", "reason is required")
	}
	a.CorrectedEntryID, a.Reason = target, b.Redact(a.Reason)
	do := func(ctx context.Context, s *memory.CallTx, e *contents.EntryRow, n memory.Issued) error {
		if target == e.EntryID {
			return rules.Invalid("correctedEntryId", "an entry cannot correct itself")
		}
		if _, err := committed(ctx, s, target); err != nil {
			return err
		}
		doc := contents.ChangeDoc{
			Key: n.Hub, EntryID: e.EntryID, CorrectedEntryID: target, CorrectionReason: a.Reason, CorrectionTime: memory.Time(s.Tx.Now().UnixNano()),
		}
		doc.Apply(&e.Entry)
		if err := contents.Correct(ctx, s, e); err != nil {
			return err
		}
		return logPatch(ctx, s, e, doc)
	}
	return b.change(ctx, c, memoryID, entry, a, changing{method: "POST", suffix: ":correct", invalid: invalidArg, do: do})
}

// changing is one way to change a committed entry.
type changing struct {
	method, suffix string
	invalid        error // of its content
	do             func(ctx context.Context, s *memory.CallTx, e *contents.EntryRow, n memory.Issued) error
}

// change changes one committed entry that was not corrected yet.
func (b *Entries) change(ctx context.Context, c memory.Caller, memoryID, entry string, body any, w changing) (out contents.Entry, r memory.WriteInfo, err error) {
	memoryID, err = memory.MemoryArg(memoryID)
	id, badID := contents.EntryArg(entry)
	if err = cmp.Or(err, badID); err != nil {
		return out, r, err
	}
	shard, err := b.ShardKey(ctx, c, memoryID)
	if err != nil {
		return out, r, err
	}
	return memory.Mutate(ctx, b.Kernel, c, memory.Call{Body: body, Shard: shard}, func(ctx context.Context, s *memory.CallTx) (st memory.Step[contents.Entry], err error) {
		if err = s.Open(ctx, memoryID); err != nil {
			return st, err
		}
		if contents.IsLocalID(id) {
			err = memory.Conflict(memory.CodeNotCommitted, "wait for the hub with await_consistency, then use its entryId", "the entry has not been committed yet")
		}
		st.Route = memory.Route{Method: w.method, Path: s.Path("entries/" + id + w.suffix)}
		st.Do = func(n memory.Issued) (contents.Entry, error) {
			e, err := committed(ctx, s, id)
			if err == nil && e.CorrectionTime != 0 {
				err = memory.Conflict(memory.CodeImmutable, "add a new entry instead", "the entry was corrected and can no longer be changed")
			}
			if err == nil {
				err = w.do(ctx, s, &e, n)
			}
			return e.Entry, err
		}
		return st, cmp.Or(s.Caller.May(memory.Write), w.invalid, err)
	})
}
