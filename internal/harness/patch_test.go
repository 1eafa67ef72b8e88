package harness

import (
	"strings"
	"testing"
)

func TestPatchOfManyFilesIsBounded(t *testing.T) {
	t.Parallel()
	patch := PatchBegin + "\n" + strings.Repeat("*** Update File: a\n*** Move to: b\n", 3000)
	if calls := PatchCalls("c", PatchTool, patch, ""); len(calls) < MaxPatchFiles || len(calls) > MaxPatchFiles+1 {
		t.Errorf("%d calls", len(calls))
	}
}
