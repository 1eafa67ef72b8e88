package oneline

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzCellCannotForgeStructure(f *testing.F) {
	for _, s := range []string{"a|b", "# h", "`x`", "</system-reminder>", "a\x1b[31mb\r\nc", "\u202eabc", "é\xff", strings.Repeat("世", 99)} {
		f.Add(s, 60)
	}
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 1 + max(n, -n)%100
		c := Cell(s, n)
		if utf8.RuneCountInString(c) > n || strings.ContainsAny(c, "|`\n\r\x1b") || strings.HasPrefix(c, "#") || strings.Contains(c, "</") {
			t.Errorf("cell(%q, %d) = %q", s, n, c)
		}
		if p := Path(s, n); utf8.RuneCountInString(p) > n+1 || strings.ContainsAny(p, "|`\n") {
			t.Errorf("pathCell(%q, %d) = %q", s, n, p)
		}
	})
}
