package githook

import (
	"strings"
	"testing"
)

// The program is read correctly for every path that can be written into a guard.
func FuzzTheProgramOfAGuardIsRead(f *testing.F) {
	for _, path := range []string{"/usr/bin/cairn", "/it's a \"shop\"/cairn", "''", "a\ncairn='b'\n", `\''`, "C:/Program Files/cairn.exe"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		for _, hook := range Hooks() {
			body, intact, ours := bodyOf([]byte(Guard{Hook: hook, Program: path, Staged: []string{"diff"}}.guardText()), guardMark)
			if got := programOf(body); !intact || !ours || got != path {
				t.Errorf("%q is read as %q", path, got)
			}
		}
		if got := programOf(path); len(got) > len(path) || got != "" && !strings.Contains(path, programIs) {
			t.Errorf("%q names %q", path, got)
		}
	})
}
