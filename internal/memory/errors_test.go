package memory_test

import (
	"context"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
	"cairn/internal/store"
)

func TestErrorsOfTheStoreHaveTheirCodesAndShowNoSQL(t *testing.T) {
	t.Parallel()
	for code, w := range map[string]struct {
		status int
		code   string
	}{
		store.CodeBusy: {503, "store_busy"}, store.CodeOverloaded: {503, "store_busy"}, store.CodeFull: {507, "disk_full"},
		store.CodeReadOnly: {503, "store_read_only"}, store.CodeIO: {503, "store_read_only"}, store.CodeClosed: {503, "stopping"},
		store.CodeCorrupt: {500, "internal"}, "database_error": {500, "internal"}, "internal": {500, "internal"},
	} {
		err := memory.ToFault(fault.New(fault.Unavailable, code, "database is locked: SELECT").WithHint("h"))
		if code == store.CodeFull || code == store.CodeReadOnly || code == store.CodeClosed {
			memorytest.WantError(t, code, err, w.status, w.code)
			continue
		}
		memorytest.WantError(t, code, err, w.status, w.code)
		memorytest.WantNot(t, code, err.Error(), "locked")
	}
	d := memorytest.NewDesk(t)
	err := d.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.Exec(ctx, "SELECT nothing FROM nowhere")
		return err
	})
	memorytest.WantNot(t, "an error of SQL", err.Error(), "nowhere")
}
