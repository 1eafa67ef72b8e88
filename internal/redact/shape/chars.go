package shape

// The classes of single bytes. Only ASCII letters are letters; a word consists of letters,
// digits and '_'; control characters count as space.

func IsLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func IsUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func IsLetter(c byte) bool { return IsLower(c | 0x20) }
func IsDigit(c byte) bool  { return '0' <= c && c <= '9' }
func IsAlnum(c byte) bool  { return IsLetter(c) || IsDigit(c) }
func IsWord(c byte) bool   { return IsAlnum(c) || c == '_' }
func IsBlank(c byte) bool  { return c == ' ' || c == '\t' }
func IsSpace(c byte) bool  { return c <= ' ' || c == 0x7f }
func IsQuote(c byte) bool  { return c == '"' || c == '\'' || c == '`' }
func IsHex(c byte) bool    { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// Lower returns a capital as a small letter, and any other byte unchanged.
func Lower(c byte) byte {
	if IsUpper(c) {
		return c | 0x20
	}
	return c
}

// HasFold reports whether s begins with prefix, which is in lower case.
func HasFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if Lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// EndsFold reports whether s ends with suffix, which is in lower case.
func EndsFold(s, suffix string) bool {
	return len(s) >= len(suffix) && HasFold(s[len(s)-len(suffix):], suffix)
}

// Skip returns the first index from i on whose byte is not accepted, at most i+limit.
func Skip(s string, i, limit int, accept func(byte) bool) int {
	for end := min(len(s), i+limit); i < end && accept(s[i]); i++ {
	}
	return i
}

// Back returns the start of the run of accepted bytes that ends before i, at most limit
// bytes long.
func Back(s string, i, limit int, accept func(byte) bool) int {
	for low := max(0, i-limit); i > low && accept(s[i-1]); i-- {
	}
	return i
}

// WordStart reports whether index i does not split a word. Words consist of ASCII letters,
// digits and '_'.
func WordStart(s string, i int) bool {
	return i == 0 || !IsWord(s[i-1])
}

// IsUUID reports whether s is a UUID in its usual 8-4-4-4-12 form.
func IsUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (s[i] == '-') || !dash && !IsHex(s[i]) {
			return false
		}
	}
	return true
}
