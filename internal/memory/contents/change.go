package contents

import (
	"context"
	"encoding/json"

	"cairn/internal/memory"
)

// ChangeDoc is the document of a patch or of a correction, which has only the last three fields.
type ChangeDoc struct {
	Key              string            `json:"key"`
	EntryID          string            `json:"entryId"`
	Tags             map[string]string `json:"tags,omitzero"`
	Summary          *string           `json:"summary,omitzero"`
	CorrectedEntryID string            `json:"correctedEntryId,omitempty"`
	CorrectionReason string            `json:"correctionReason,omitempty"`
	CorrectionTime   memory.Time       `json:"correctionTime,omitzero"`
}

// Apply applies c to an entry.
func (c *ChangeDoc) Apply(e *Entry) {
	if c.Tags != nil {
		e.Tags = c.Tags
	}
	if c.Summary != nil {
		e.Summary = *c.Summary
	}
	if c.CorrectedEntryID != "" {
		e.CorrectedEntryID, e.CorrectionReason, e.CorrectionTime = c.CorrectedEntryID, c.CorrectionReason, c.CorrectionTime
	}
}

const (
	updatePatch      = `UPDATE memory_entries SET tags = ?2, summary = ?3 WHERE key = ?1`
	updateCorrection = `UPDATE memory_entries SET correction_ns = ?2, corrected_entry_id = ?3, correction_reason = ?4 WHERE key = ?1`
)

// Patch stores and indexes the tags and the summary of a row.
func Patch(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	err := PatchRow(ctx, s, e)
	if err == nil && e.Synced {
		err = indexEntry(ctx, s, e)
	}
	return err
}

// PatchRow stores the tags and the summary of a row, but does not index it.
func PatchRow(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	tags, err := json.Marshal(e.Tags)
	if err == nil {
		err = s.Exec(ctx, updatePatch, e.Key, string(tags), e.Summary)
	}
	return err
}

// Correct stores the correction of a row.
func Correct(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	return s.Exec(ctx, updateCorrection, e.Key, e.CorrectionTime, e.CorrectedEntryID, e.CorrectionReason)
}
