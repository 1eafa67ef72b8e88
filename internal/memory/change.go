package memory

import (
	"context"
	"encoding/json"

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

// The documents of patches.
type (
	patchDoc struct {
		Key     string            `json:"key"`
		EntryID string            `json:"entryId"`
		Tags    map[string]string `json:"tags,omitzero"`
		Summary *string           `json:"summary,omitzero"`
	}
	correctionDoc struct {
		Key              string `json:"key"`
		EntryID          string `json:"entryId"`
		CorrectedEntryID string `json:"correctedEntryId"`
		CorrectionReason string `json:"correctionReason"`
		CorrectionTime   Time   `json:"correctionTime"`
	}
)

const (
	updatePatch      = `UPDATE memory_entries SET tags = ?2, summary = ?3 WHERE key = ?1`
	updateCorrection = `UPDATE memory_entries SET correction_ns = ?2, corrected_entry_id = ?3, correction_reason = ?4 WHERE key = ?1`
)

// PatchEntry changes tags and summary of a committed entry. The change is visible here
// immediately.
//
// Errors: CodeNotCommitted (Conflict) for a localId, CodeNotFound, CodeInvalid,
// CodeImmutable (Conflict) for a corrected entry, CodeMismatch.
func (b *Service) PatchEntry(ctx context.Context, c Caller, memory, entry string, p Patch) (Entry, WriteInfo, error) {
	var invalidArg error
	if p.Tags == nil && p.Summary == nil {
		invalidArg = invalid("tags", "give tags or summary")
	}
	invalidArg = firstError(invalidArg, rules.CheckTags(p.Tags))
	if p.Summary != nil {
		invalidArg = firstError(invalidArg, rules.CheckLength("summary", *p.Summary, rules.MaxSummary))
		clean := b.redact(*p.Summary)
		p.Summary = &clean
	}
	if p.Tags != nil {
		p.Tags = b.redactTags(p.Tags)
	}
	return b.change(ctx, c, memory, entry, p, changing{method: "PATCH", invalid: invalidArg, do: func(ctx context.Context, s *callTx, e *entryRow, n issued) error {
		if p.Tags != nil {
			e.Tags = p.Tags
		}
		if p.Summary != nil {
			e.Summary = *p.Summary
		}
		if err := s.patch(ctx, e); err != nil {
			return err
		}
		return s.logPatch(ctx, e, patchDoc{n.hub, e.EntryID, p.Tags, p.Summary})
	}})
}

// logPatch logs a patch. The patch is not sent if the hub does not know the entry.
func (s *callTx) logPatch(ctx context.Context, e *entryRow, doc any) error {
	if s.u.hub() && e.hubSeq == 0 && e.seq <= s.m.ackedSeq {
		return s.note(ctx, s.m.MemoryID, KindEntry, e.EntryID, OpPatch)
	}
	_, err := s.log(ctx, KindEntry, e.EntryID, OpPatch, doc)
	return err
}

// patch stores and indexes the tags and the summary of a row.
func (s *callTx) patch(ctx context.Context, e *entryRow) error {
	err := s.updatePatch(ctx, e)
	if err == nil && e.synced {
		err = s.index(ctx, e)
	}
	return err
}

func (s *callTx) updatePatch(ctx context.Context, e *entryRow) error {
	tags, err := json.Marshal(e.Tags)
	if err == nil {
		_, err = s.tx.Exec(ctx, updatePatch, e.key, string(tags), e.Summary)
	}
	return err
}

// CorrectEntry marks a committed entry as wrong and names the committed entry of the memory that
// is correct. An entry is corrected at most once. Errors are those of PatchEntry, CodeImmutable
// (Conflict) for a second correction, CodeInvalid if the target is the entry itself, CodeNotFound
// if it is not a committed entry of the memory.
func (b *Service) CorrectEntry(ctx context.Context, c Caller, memory, entry string, a Correction) (Entry, WriteInfo, error) {
	target, err := rules.UUIDArg("correctedEntryId", a.CorrectedEntryID)
	if err != nil {
		return Entry{}, WriteInfo{}, err
	}
	invalidArg := rules.CheckLength("reason", a.Reason, rules.MaxReason)
	if a.Reason == "" {
		invalidArg = invalid("reason", "reason is required")
	}
	a.CorrectedEntryID, a.Reason = target, b.redact(a.Reason)
	return b.change(ctx, c, memory, entry, a, changing{method: "POST", suffix: ":correct", invalid: invalidArg, do: func(ctx context.Context, s *callTx, e *entryRow, n issued) error {
		if target == e.EntryID {
			return invalid("correctedEntryId", "an entry cannot correct itself")
		}
		if _, err := s.committed(ctx, target); err != nil {
			return err
		}
		e.CorrectionTime, e.CorrectedEntryID, e.CorrectionReason = Time(s.tx.Now().UnixNano()), target, a.Reason
		if err := s.correct(ctx, e); err != nil {
			return err
		}
		return s.logPatch(ctx, e, correctionDoc{n.hub, e.EntryID, target, a.Reason, e.CorrectionTime})
	}})
}

// correct stores the correction of a row.
func (s *callTx) correct(ctx context.Context, e *entryRow) error {
	_, err := s.tx.Exec(ctx, updateCorrection, e.key, e.CorrectionTime, e.CorrectedEntryID, e.CorrectionReason)
	return err
}

// changing is one way to change a committed entry.
type changing struct {
	method, suffix string
	invalid        error // of its content
	do             func(ctx context.Context, s *callTx, e *entryRow, n issued) error
}

// change changes one committed entry that was not corrected yet.
func (b *Service) change(ctx context.Context, c Caller, memory, entry string, body any, w changing) (out Entry, r WriteInfo, err error) {
	memory, err = memoryArg(memory)
	id, badID := entryArg(entry)
	if err = firstError(err, badID); err != nil {
		return out, r, err
	}
	shard, err := b.shardKey(ctx, c, memory)
	if err != nil {
		return out, r, err
	}
	return mutate(ctx, b, c, call{body: body, shard: shard}, func(ctx context.Context, s *callTx) (st step[Entry], err error) {
		if err = s.open(ctx, memory); err != nil {
			return st, err
		}
		if isLocalID(id) {
			err = conflict(CodeNotCommitted, "wait for the hub with await_consistency, then use its entryId", "the entry has not been committed yet")
		}
		st.route = route{w.method, s.path("entries/" + id + w.suffix)}
		st.do = func(n issued) (Entry, error) {
			e, err := s.committed(ctx, id)
			if err == nil && e.CorrectionTime != 0 {
				err = conflict(CodeImmutable, "add a new entry instead", "the entry was corrected and can no longer be changed")
			}
			if err == nil {
				err = w.do(ctx, s, &e, n)
			}
			return e.Entry, err
		}
		return st, firstError(s.c.may(Write), w.invalid, err)
	})
}

// entryArg parses the name of an entry: a UUID or a localId.
func entryArg(text string) (string, error) {
	if isLocalID(text) {
		return text, nil
	}
	id, err := rules.UUIDArg("entry_id", text)
	if err != nil && text != "" {
		err = invalid("entry_id", "entry_id is neither a UUID nor a localId")
	}
	return id, err
}
