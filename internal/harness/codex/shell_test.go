package codex

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"cairn/internal/harness"
)

// FuzzPatch checks that every file of a parsed patch occurs in the patch, in the same order.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		"*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: c\n@@\n-x\n*** Delete File: d\n*** End Patch",
		"*** Begin Patch *** Add File: a", "*** Update File:\n*** Move to: x", "\r*** Delete File: C:\\x\r\n", "cd a && apply_patch <<'E'\n*** Begin Patch\n*** End PatchE",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, patch string) {
		for i, c := range harness.PatchCalls("c", harness.PatchTool, patch, "") {
			if c.Part != i || c.ID != "c" || strings.TrimSpace(c.Path) == "" || !strings.Contains(patch, c.Path) {
				t.Errorf("%d: %+v", i, c)
			}
		}
		if inner, _, ok := shellPatch(patch); ok && (!strings.HasPrefix(inner, harness.PatchBegin) || !strings.HasSuffix(inner, harness.PatchEnd)) {
			t.Errorf("%q", inner)
		}
		line, err := json.Marshal(patch)
		if err != nil {
			t.Fatal(err)
		}
		shellLine(line)
		if words, ok := splitWords("sh -c " + quoted(patch)); !ok || !slices.Equal(words, []string{"sh", "-c", patch}) {
			t.Errorf("%q is read back as %q", patch, words)
		}
	})
}
