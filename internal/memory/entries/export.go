package entries

import (
	"cmp"
	"context"
	"math"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
)

// ExportLimit is the maximum number of entries of one Export.
const ExportLimit = 1000

// Exported is a page of an export: entries, oldest first, and the cursor of the next page, ""
// after the last one. The array is never nil.
type Exported struct {
	Entries []contents.Entry
	Next    string
}

// Export returns committed entries of a memory, oldest first, after a cursor ("" for the start) in
// the form of ListEntries. limit is clamped to 1 … ExportLimit; 0 means ExportLimit. A line of the
// export is one entry as JSON.
func (b *Entries) Export(ctx context.Context, c memory.Caller, memoryID, after string, limit int64) (Exported, error) {
	out := Exported{Entries: []contents.Entry{}}
	memoryID, err := memory.MemoryArg(memoryID)
	if err = cmp.Or(err, c.CheckArgs()); err != nil {
		return out, err
	}
	if limit <= 0 || limit > ExportLimit {
		limit = ExportLimit
	}
	err = b.ReadMemory(ctx, c, memoryID, func(ctx context.Context, s *memory.CallTx) error {
		low := memory.Time(math.MinInt64)
		if after != "" {
			if low, err = cursor(ctx, s, "after", after); err != nil {
				return err
			}
		}
		page := Listed{Entries: out.Entries, AppliedLimit: int(limit)}
		err := list(ctx, s, &page, selectOldest, low, math.MaxInt64, "", nil)
		for i := len(page.Entries) - 1; i >= 0; i-- { // a list is newest first
			out.Entries = append(out.Entries, page.Entries[i])
		}
		return err
	})
	if n := len(out.Entries); n == int(limit) {
		out.Next = out.Entries[n-1].EntryID
	}
	return out, err
}
