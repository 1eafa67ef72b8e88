package redact

func isLower(c byte) bool  { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }
func isLetter(c byte) bool { return isLower(c | 0x20) }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool  { return isLetter(c) || isDigit(c) }
func isWord(c byte) bool   { return isAlnum(c) || c == '_' }
func isBlank(c byte) bool  { return c == ' ' || c == '\t' }
func isSpace(c byte) bool  { return c <= ' ' || c == 0x7f }
func isQuote(c byte) bool  { return c == '"' || c == '\'' || c == '`' }
func isHex(c byte) bool    { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

func lower(c byte) byte {
	if isUpper(c) {
		return c | 0x20
	}
	return c
}

// hasFold reports whether s begins with prefix, which is in lower case.
func hasFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != prefix[i] {
			return false
		}
	}
	return true
}

// endsFold reports whether s ends with suffix, which is in lower case.
func endsFold(s, suffix string) bool {
	return len(s) >= len(suffix) && hasFold(s[len(s)-len(suffix):], suffix)
}

// skip returns the first index from i on whose byte is not accepted, at most i+limit.
func skip(s string, i, limit int, accept func(byte) bool) int {
	for end := min(len(s), i+limit); i < end && accept(s[i]); i++ {
	}
	return i
}

// back returns the start of the run of accepted bytes that ends before i, at most limit
// bytes long.
func back(s string, i, limit int, accept func(byte) bool) int {
	for low := max(0, i-limit); i > low && accept(s[i-1]); i-- {
	}
	return i
}

// wordStart reports whether index i does not split a word. Words consist of ASCII letters,
// digits and '_'.
func wordStart(s string, i int) bool {
	return i == 0 || !isWord(s[i-1])
}

// isUUID reports whether s is a UUID in its usual 8-4-4-4-12 form.
func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (s[i] == '-') || !dash && !isHex(s[i]) {
			return false
		}
	}
	return true
}
