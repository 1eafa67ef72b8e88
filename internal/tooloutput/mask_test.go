package tooloutput

import (
	"strings"
	"testing"
)

// FuzzMask checks that masking is idempotent, leaves no digit, and does not depend on the values
// of the digits.
func FuzzMask(f *testing.F) {
	for _, s := range []string{"", "a1", "took 1.23s", "10:15:32,5", "0xff12 ab12cd", "1.", ".1", "a.1.b", "漢1字"} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, line string, shift uint8) {
		var h lineHasher
		masked := h.masked(line)
		if strings.ContainsAny(masked, "0123456789") {
			t.Fatalf("%q leaves %q", line, masked)
		}
		if again := h.masked(masked); again != masked {
			t.Fatalf("%q, then %q", masked, again)
		}
		other := []byte(line)
		for i, c := range other {
			if isDigit(c) {
				other[i] = '0' + (c-'0'+shift%10)%10
			}
		}
		if got := h.masked(string(other)); got != masked {
			t.Fatalf("%q gives %q, %q gives %q", line, masked, other, got)
		}
	})
}
