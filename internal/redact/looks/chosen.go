package looks

import (
	"strings"

	"cairn/internal/redact/shape"
)

// Chosen reports whether v looks like a password that a user or a program has chosen.
// It is false for a word, a number with its unit, an algorithm, a path, an address and
// code. v contains no blanks. Chosen decides where a name or a sentence is not enough
// evidence.
func Chosen(v string) bool {
	const shortest = 4
	v = strings.Trim(v, "*_~`")
	bare := strings.TrimRight(v, ".,:;!?")
	if len(bare) < shortest || strings.ContainsAny(bare, "()[]{}<>|") || IsLocation(bare) || isExpression(bare) || isAddress(bare) || isFileName(bare) {
		return false
	}
	letters, digits, signs := CountKinds(bare)
	switch {
	case letters == 0:
		return digits == len(bare)
	case digits == 0:
		return signs > 0 && isSign(v[len(v)-1]) || signs > 1
	case signs > 0:
		return true
	}
	return !ordinaryParts(bare)
}

// CountKinds counts the letters, the digits and the signs of a password in v.
// Bytes beyond ASCII count as letters.
func CountKinds(v string) (letters, digits, signs int) {
	for i := range len(v) {
		switch c := v[i]; {
		case shape.IsLetter(c) || c >= 0x80:
			letters++
		case shape.IsDigit(c):
			digits++
		case isSign(c):
			signs++
		}
	}
	return letters, digits, signs
}

// isSign reports whether c is punctuation that occurs in passwords but not in words.
func isSign(c byte) bool { return strings.IndexByte("!@#$%^&*+=", c) >= 0 }

// isAddress reports whether v is an e-mail address.
func isAddress(v string) bool {
	name, host, ok := strings.Cut(v, "@")
	return ok && name != "" && strings.Contains(host, ".") && strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == ""
}

// isFileName reports whether v ends in the suffix of a file that contains keys or
// settings.
func isFileName(v string) bool {
	switch v[strings.LastIndexByte(v, '.')+1:] {
	case "json", "pem", "key", "p12", "pfx", "crt", "env", "txt", "yaml", "yml", "toml", "ini", "conf", "jks", "go", "py", "js", "ts", "md":
		return strings.Contains(v, ".")
	}
	return false
}

// ordinaryParts reports whether all parts of v are ordinary. Hyphens, underscores, dots
// and slashes separate parts. An ordinary part is a word, a number, a number with its unit
// or an algorithm.
func ordinaryParts(v string) bool {
	for part := range strings.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_./:'\\", r) }) {
		if !isOrdinary(part) {
			return false
		}
	}
	return true
}

// isOrdinary reports whether v is a word, a number, a number with its unit (8chars), or a
// term with a number (sha256, v2). v consists of letters and digits.
func isOrdinary(v string) bool {
	head := shape.Skip(v, 0, len(v), shape.IsLetter)
	number := shape.Skip(v, head, len(v), shape.IsDigit)
	switch {
	case head == len(v):
		return true
	case head == 0:
		return isUnit(strings.ToLower(v[number:]))
	}
	return number == len(v) && (head == 1 || isNumberedTerm(strings.ToLower(v[:head]))) || isTermOfMoreParts(strings.ToLower(v))
}

// isUnit reports whether w can follow a number: 8chars, 2nd, 24h, 2fa.
func isUnit(w string) bool {
	switch w {
	case "", "char", "chars", "character", "characters", "letters", "digits", "bit", "byte", "bytes", "words", "times",
		"h", "m", "s", "d", "ms", "min", "hours", "days", "x", "k", "kb", "mb", "gb", "st", "nd", "rd", "th", "fa", "le", "be", "bits", "password":
		return true
	}
	return false
}

// isNumberedTerm reports whether w, which precedes a number, is a term rather than a word
// of a password: sha256, utf8, v2, base64.
func isNumberedTerm(w string) bool {
	switch w {
	case "sha", "md", "base", "utf", "ascii", "aes", "rsa", "ed", "argon", "bcrypt", "pbkdf", "blake", "crc", "rot", "des",
		"oauth", "http", "tls", "ssl", "ipv", "pkcs", "ec", "int", "uint", "float", "latin", "win", "cp",
		"python", "java", "php", "node", "es", "rc", "api", "step", "phase", "part", "field", "arg", "param", "line", "column",
		"chapter", "section", "option", "item", "level", "tier", "version", "type", "key", "string", "varchar", "char", "vec":
		return true
	}
	return false
}

// isTermOfMoreParts reports whether w is a term with a number within it.
func isTermOfMoreParts(w string) bool {
	switch w {
	case "argon2id", "argon2i", "argon2d", "pbkdf2sha256", "i18n", "l10n", "a11y", "k8s", "x86", "amd64", "arm64", "s3cmd", "e2e", "utf8mb4", "http2s", "base64url", "base64encoded":
		return true
	}
	return false
}
