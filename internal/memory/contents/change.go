package contents

import (
	"context"
	"encoding/json"

	"cairn/internal/memory"
)

// PatchDoc is the document of a patch.
type PatchDoc struct {
	Key     string            `json:"key"`
	EntryID string            `json:"entryId"`
	Tags    map[string]string `json:"tags,omitzero"`
	Summary *string           `json:"summary,omitzero"`
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
		_, err = s.Tx.Exec(ctx, updatePatch, e.Key, string(tags), e.Summary)
	}
	return err
}

// Correct stores the correction of a row.
func Correct(ctx context.Context, s *memory.CallTx, e *EntryRow) error {
	_, err := s.Tx.Exec(ctx, updateCorrection, e.Key, e.CorrectionTime, e.CorrectedEntryID, e.CorrectionReason)
	return err
}
