package redact

import "strings"

// stretch is the part of a word that is least like language.
type stretch struct {
	start, end int // bytes in the word
	halfBits   int // evidence that it is random, in half bits; 0 for none
}

// longestJudged bounds how much of a word is read where only a verdict counts.
const longestJudged = 512

// strange reports whether the stretch of word is a secret: most of the word with
// some evidence, half of it with dense evidence, or a long part with much. The longer it is, the more
// evidence a random one has; names with many joints or without a digit need more.
func (r stretch) strange(word string, some, much int) bool {
	const long = 18
	n := r.end - r.start
	part := word[r.start:r.end]
	if !strings.ContainsAny(part, "0123456789") {
		some += 8
	}
	joints := strings.Count(part, "-") + strings.Count(part, ".") + strings.Count(part, "_")
	bits := r.halfBits - 5*max(0, joints-1-n/16)
	switch {
	case 4*n >= 3*len(word):
		return bits >= max(some, n-4)
	case 2*n >= len(word) && bits >= max(some+12, 2*n):
		return true
	}
	return n >= long && bits >= max(much, n)
}

// Evidence in half bits, beside that of bigrams: what random text has more often
// than names and words do is positive.
const (
	evidenceDigit     = 3  // a digit after a letter
	evidenceAfter     = 4  // a letter after a digit
	evidenceHump      = 4  // a capital after a small letter
	evidenceNext      = -3 // a letter after its neighbour in the alphabet
	evidencePath      = -5 // a slash
	evidenceSeparator = -4 // a dot, a hyphen, …
)

// strangest finds the stretch of word with the most evidence of randomness, that
// is the one whose letters, digits and capitals follow one another least like
// those of names and words (the greatest sum of consecutive terms). What is
// random but public is passed over: UUIDs, runs of hexadecimal digits and what
// public lists.
func strangest(word string) stretch {
	var best stretch
	start, sum, run := 0, 0, 0
	neutral := false
	for i := 0; i < len(word); i++ {
		c := word[i]
		if i >= run && (i == 0 || !isAlnum(word[i-1])) {
			if n := public(word[i:]); n > 0 {
				i += n - 1
				start, sum, run = i+1, 0, i+1
				continue
			}
			run = i + countClass(word, i, len(word), 'a')
			neutral = hexRun(word[i:run])
		}
		switch {
		case c >= 0x80:
			sum = 0
		case neutral && i < run:
		case i == 0:
		default:
			sum += evidence(word[i-1], c)
		}
		if sum <= 0 {
			sum, start = 0, i+1
		} else if sum > best.halfBits {
			best.halfBits, best.start, best.end = sum, start, i+1
		}
	}
	return best
}

// evidence weighs that c follows p.
func evidence(p, c byte) int {
	switch {
	case !isAlnum(c):
		return evidenceOf(c)
	case !isAlnum(p), isDigit(c) && isDigit(p):
		return 0
	case isDigit(c):
		return evidenceDigit
	case isDigit(p):
		return evidenceAfter
	case isUpper(c) && !isUpper(p):
		return evidenceHump
	case c-p == 1 || p-c == 1:
		return evidenceNext
	}
	return int(bigrams[26*int(p|0x20-'a')+int(c|0x20-'a')]) - 'K'
}

func evidenceOf(c byte) int {
	switch c {
	case '/', '\\':
		return evidencePath
	case '+', '=', '!', '#', '$', '%', '^', '&', '*', '@', '~':
		return 0
	}
	return evidenceSeparator
}

// hexRun reports whether a run of letters and digits is a hexadecimal number:
// long enough, with a digit, in one case.
func hexRun(s string) bool {
	const shortest = 6
	var digit, small, capital bool
	for i := range len(s) {
		c := s[i]
		switch {
		case isDigit(c):
			digit = true
		case 'a' <= c && c <= 'f':
			small = true
		case 'A' <= c && c <= 'F':
			capital = true
		default:
			return false
		}
	}
	return len(s) >= shortest && digit && !(small && capital)
}

// whole returns the bytes of word to take out for the stretch: a value without
// its name, or the part of a path or URL that holds the stretch.
func (r stretch) whole(word string) (int, int) {
	start, end := 0, len(word)
	if i := strings.IndexAny(word, "=:"); i > 0 && i <= r.start && i < len(word)-1 {
		start = i + 1
	}
	if 5*(r.end-r.start) >= 3*(end-start) {
		return start, end
	}
	const separators = "/=:&?@#|\\~*!$^%"
	if i := strings.LastIndexAny(word[:r.start], separators); i >= 0 {
		start = max(start, i+1)
	}
	if i := strings.IndexAny(word[r.end:], separators); i >= 0 {
		end = r.end + i
	}
	return start, end
}

// public returns how many bytes at the start of w, where a run of letters and
// digits begins, are random by nature and no secret; 0 for none.
func public(w string) int {
	for _, length := range [...]func(string) int{uuidLength, ulid, digest, sshPublicKey, nodeID, podSuffix, vendorID, macTemporary} {
		if n := length(w); n > 0 {
			return n
		}
	}
	return 0
}

// uuidLength returns 36 if w begins with a UUID, else 0.
func uuidLength(w string) int {
	if len(w) >= 36 && w[8] == '-' && isUUID(w[:36]) {
		return 36
	}
	return 0
}

// sshPublicKey returns the length of an SSH public key at the start of w, 0 if it
// does not begin with one.
func sshPublicKey(w string) int {
	for _, p := range [...]string{"AAAAB3NzaC1", "AAAAC3NzaC1", "AAAAE2VjZHNh", "AAAAGnNr"} {
		if strings.HasPrefix(w, p) {
			return countClass(w, 0, len(w), 'F')
		}
	}
	return 0
}

// podSuffix returns the length of what Kubernetes hangs on a pod's name, such as
// 6d4cf56db6-x7k2p, at the start of w; 0 if it does not begin with that.
func podSuffix(w string) int {
	hash := skip(w, 0, 10, func(c byte) bool { return strings.IndexByte("0123456789bcdf", c) >= 0 })
	end := skip(w, hash+1, 6, func(c byte) bool { return strings.IndexByte("bcdfghjklmnpqrstvwxz2456789", c) >= 0 })
	if hash < 8 || w[min(hash, len(w)-1)] != '-' || end != hash+6 || end < len(w) && isWord(w[end]) {
		return 0
	}
	return end
}

// vendorID returns the length of an id that a model vendor gives to a request, a
// message or a call, at the start of w; 0 if it does not begin with one.
func vendorID(w string) int {
	switch w[0] {
	case 't', 's', 'r', 'm', 'c':
		for _, p := range [...]string{"toolu_", "srvtoolu_", "req_", "msg_", "call_", "resp_", "chatcmpl-"} {
			if strings.HasPrefix(w, p) {
				return len(p) + countClass(w, len(p), 64, 'a')
			}
		}
	}
	return 0
}

// nodeID returns the length of a GitHub GraphQL id, such as PR_kwDO…, at the start
// of w; 0 if it does not begin with one.
func nodeID(w string) int {
	i := skip(w, 0, 6, isUpper)
	if i == 0 || len(w) < i+3 || w[i:i+2] != "_k" || w[i+2] != 'w' && w[i+2] != 'g' {
		return 0
	}
	return i + countClass(w, i, 64, 'b')
}

// macTemporary returns the length of "var/folders/xx/long name" at the start of w,
// 0 if it does not begin with that.
func macTemporary(w string) int {
	const folders = "var/folders/"
	if !strings.HasPrefix(w, folders) {
		return 0
	}
	n := len(folders)
	for range 2 {
		if j := strings.IndexByte(w[n:], '/'); j >= 0 {
			n += j + 1
		} else {
			return len(w)
		}
	}
	return n
}

// digest returns the length of a digest with its algorithm's name in front, as
// lock files have it; 0 if w does not begin with one.
func digest(w string) int {
	if c := w[0]; c != 's' && c != 'h' && c != 'S' {
		return 0
	}
	for _, d := range [...]struct {
		prefix string
		length int // of the digest in base64
	}{{"sha1-", 28}, {"sha256-", 44}, {"sha384-", 64}, {"sha512-", 88}, {"h1:", 44}, {"SHA256:", 43}} {
		if strings.HasPrefix(w, d.prefix) {
			if n := countClass(w, len(d.prefix), 100, 'F'); n == d.length {
				return len(d.prefix) + n
			}
		}
	}
	return 0
}

// ulid returns the length of a ULID of our time at the start of w, 0 if it does not
// begin with one.
func ulid(w string) int {
	const length = 26
	if !strings.HasPrefix(w, "01") || countClass(w, 0, length+1, 'a') != length {
		return 0
	}
	for i := range length {
		if strings.IndexByte("iloILOuU", w[i]) >= 0 {
			return 0
		}
	}
	return length
}
