package tooloutput

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a digest (amendments §A.6).
const (
	MaxDigest      = 4 << 10 // bytes
	digestFirst    = 5       // lines kept at the beginning
	digestLast     = 25      // lines kept at the end
	maxDigestLine  = 400     // bytes of one line, in a long output
	Gap            = "…"     // replaces omitted lines
	maxMoreLength  = 24      // maximum bytes of "… N more like this"
	lineAndNewline = 1
)

// Digest returns the digest of an output, at most MaxDigest bytes. It contains the first and last
// lines, and lines that look like errors, warnings, counts, versions or places in files. A run of
// lines that differ only in numbers is kept as its first line and a count. An output without text
// returns "".
func Digest(lines []Line) string {
	all := foldAlike(lines)
	limit := max(maxDigestLine, MaxDigest/max(len(all), 1)-len(Gap)-lineAndNewline)
	for i := range all {
		all[i].text = shortLine(all[i].text, limit)
	}
	chooseLines(all)
	var b strings.Builder
	gap := false
	for i := range all {
		switch l := &all[i]; {
		case l.kept:
			l.write(&b)
			gap = false
		case !gap && b.Len() > 0:
			b.WriteString(Gap + "\n")
			gap = true
		}
	}
	return strings.TrimSuffix(strings.TrimSuffix(b.String(), Gap+"\n"), "\n")
}

// DigestedLines returns the lines of a digest that were printed, without the gaps and counts.
func DigestedLines(digest string) []Line {
	return slices.DeleteFunc(Lines(digest), func(l Line) bool { return strings.HasPrefix(l.Text, Gap) })
}

// digestLine is a line of an output, or a run of similar lines.
type digestLine struct {
	text string
	more int // similar lines after it
	kept bool
}

// size returns the maximum bytes that the line takes in a digest, including a gap after it.
func (l *digestLine) size() int {
	n := len(l.text) + lineAndNewline + len(Gap) + lineAndNewline
	if l.more > 0 {
		n += maxMoreLength
	}
	return n
}

func (l *digestLine) write(b *strings.Builder) {
	b.WriteString(l.text)
	b.WriteByte('\n')
	if l.more > 0 {
		fmt.Fprintf(b, Gap+" %d more like this\n", l.more)
	}
}

// foldAlike folds runs of three or more lines that differ only in numbers.
func foldAlike(lines []Line) (all []digestLine) {
	all = make([]digestLine, 0, len(lines))
	last, run := LineHash(0), 0 // hash of the previous lines, and their number
	for _, line := range lines {
		if line.Masked == 0 || line.Masked != last {
			last, run = line.Masked, 0
		}
		run++
		if run > 2 {
			if run == 3 { // folds the second line of the run, too
				all = all[:len(all)-1]
				all[len(all)-1].more = 1
			}
			all[len(all)-1].more++
			continue
		}
		all = append(all, digestLine{text: line.Text})
	}
	return all
}

// shortLine returns the start of a line and a Gap, at most limit bytes. It does not split a
// character. A line within the limit is returned unchanged.
func shortLine(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	end := limit - len(Gap)
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + Gap
}

// chooseLines marks the lines that a digest keeps, the most important ones first, until the
// digest is full.
func chooseLines(all []digestLine) {
	room := MaxDigest
	keep := func(i int) {
		if l := &all[i]; !l.kept && l.size() <= room {
			l.kept = true
			room -= l.size()
		}
	}
	first, last := min(digestFirst, len(all)), max(0, len(all)-digestLast)
	for i := range first {
		keep(i)
	}
	var telling [rankOther][]int
	for i := first; i < last; i++ {
		if rank := rankLine(all[i].text); rank < rankOther {
			telling[rank] = append(telling[rank], i)
		}
	}
	for i := len(all) - 1; i >= max(0, len(all)-digestFirst); i-- {
		keep(i)
	}
	for _, i := range telling[rankError] {
		if room < MaxDigest/3 { // the rest is for the end, where most tools print a summary
			break
		}
		keep(i)
	}
	for i := len(all) - 1; i >= last; i-- {
		keep(i)
	}
	for _, i := range slices.Concat(telling[:]...) {
		keep(i)
	}
}

// Ranks of lines, most important first.
const (
	rankError   = iota
	rankWarning // or a place in a file
	rankCount   // or a version
	rankOther
)

// rankLine returns the best rank of the words that a line contains; prefixes of words match, too.
// Counts require a number in the line.
func rankLine(line string) int {
	numbers := hasDigit(line)
	best := rankOther
	if numbers && strings.IndexByte(line, '%') >= 0 {
		best = rankCount
	}
	before := byte(' ')
	for i := 0; i+1 < len(line); i++ {
		c := line[i]
		if startsWord(before, c) {
			if best = min(best, rankOfWord(line[i:], numbers)); best == rankError {
				return best
			}
		}
		before = c
	}
	switch {
	case numbers && best > rankWarning && strings.IndexByte(line, ':') > 0 && hasPlace(line):
		return rankWarning
	case numbers && best > rankCount && hasVersion(line):
		return rankCount
	}
	return best
}

func hasDigit(line string) bool {
	for i := range len(line) {
		if isDigit(line[i]) {
			return true
		}
	}
	return false
}

// startsWord reports whether c starts a word, or a part of a name like TypeError. before is the
// byte before c.
func startsWord(before, c byte) bool {
	switch {
	case c >= 0x80:
		return true
	case c|0x20 < 'a' || c|0x20 > 'z':
		return false
	}
	return !inWord(before) || c < 'a' && before >= 'a'
}

// inWord reports whether a byte belongs to a word.
func inWord(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80 }

// rankOfWord returns the rank of the word that a text begins with.
func rankOfWord(s string, numbers bool) int {
	errors, warnings, counts := tellingWords(lowerASCII(s[0]), lowerASCII(s[1]))
	switch {
	case beginsWithAny(s, errors):
		return rankError
	case beginsWithAny(s, warnings):
		return rankWarning
	case numbers && beginsWithAny(s, counts):
		return rankCount
	}
	return rankOther
}

func lowerASCII(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// tellingWords returns the words of each rank that begin with two given bytes, separated by |.
func tellingWords(first, second byte) (errors, warnings, counts string) {
	switch uint16(first)<<8 | uint16(second) {
	case 'a'<<8 | 'b':
		return "abort", "", ""
	case 'a'<<8 | 's':
		return "assert", "", ""
	case 'a'<<8 | 'd':
		return "", "", "added"
	case 'b'<<8 | 'u':
		return "", "", "built"
	case 'c'<<8 | 'a':
		return "cannot", "caution", ""
	case 'c'<<8 | 'o':
		return "could not|couldn't|conflict", "", "coverage|commit"
	case 'c'<<8 | 'h':
		return "", "", "change"
	case 'c'<<8 | 'r':
		return "", "", "created"
	case 'd'<<8 | 'e':
		return "denied", "deprecat", "deletion"
	case 'd'<<8 | 'o':
		return "", "", "done"
	case 'e'<<8 | 'r':
		return "error", "", ""
	case 'e'<<8 | 'x':
		return "exception|expected", "", ""
	case 'f'<<8 | 'a':
		return "fail|fatal", "", ""
	case 'f'<<8 | 'i':
		return "", "", "file|finished"
	case 'f'<<8 | 'o':
		return "", "", "found"
	case 'i'<<8 | 'n':
		return "invalid", "", "insertion|install"
	case 'k'<<8 | 'i':
		return "killed", "", ""
	case 'l'<<8 | 'i':
		return "", "", "listening|line"
	case 'm'<<8 | 'a':
		return "", "", "match"
	case 'm'<<8 | 'i':
		return "mismatch|missing", "", ""
	case 'n'<<8 | 'o':
		return "not found|no such", "", ""
	case 'o'<<8 | 'k':
		return "", "", "ok "
	case 'p'<<8 | 'a':
		return "panic", "", "pass"
	case 'p'<<8 | 'o':
		return "", "", "port"
	case 'r'<<8 | 'e':
		return "refused", "", "removed|result"
	case 'r'<<8 | 'o':
		return "", "", "row"
	case 's'<<8 | 'e':
		return "segmentation", "", "second"
	case 's'<<8 | 'k':
		return "", "skipp", ""
	case 't'<<8 | 'e':
		return "", "", "test"
	case 't'<<8 | 'i':
		return "timed out|timeout", "", ""
	case 't'<<8 | 'o':
		return "", "todo", "total"
	case 't'<<8 | 'r':
		return "traceback", "", ""
	case 'u'<<8 | 'n':
		return "undefined|unexpected", "", ""
	case 'u'<<8 | 'p':
		return "", "", "updated"
	case 'v'<<8 | 'e':
		return "", "", "version"
	case 'w'<<8 | 'a':
		return "", "warn", ""
	case 0xe2<<8 | 0x9c:
		return "✗|✖|✘", "", ""
	case 0xc3<<8 | 0x97:
		return "×", "", ""
	}
	return "", "", ""
}

// beginsWithAny reports whether a text begins with one of the words, ignoring case.
func beginsWithAny(s, words string) bool {
	for words != "" {
		var word string
		word, words, _ = strings.Cut(words, "|")
		if len(s) >= len(word) && equalsFolded(s[:len(word)], word) {
			return true
		}
	}
	return false
}

// equalsFolded reports whether a text equals a lower-case text of the same length, ignoring case.
func equalsFolded(s, lower string) bool {
	for i := range len(s) {
		if lowerASCII(s[i]) != lower[i] {
			return false
		}
	}
	return true
}

// hasPlace reports whether a line contains a place in a file: a name with an extension, a colon
// and a number.
func hasPlace(line string) bool {
	for i := 1; i+1 < len(line); i++ {
		if line[i] != ':' || !isDigit(line[i+1]) {
			continue
		}
		name := i
		for name > 0 && isAlnum(line[name-1]) {
			name--
		}
		if name > 1 && name < i && line[name-1] == '.' && !isDigit(line[name]) && isAlnum(line[name-2]) {
			return true
		}
	}
	return false
}

// hasVersion reports whether a line contains three numbers joined by dots.
func hasVersion(line string) bool {
	dots, digits := 0, 0
	for i := range len(line) {
		switch c := line[i]; {
		case isDigit(c):
			digits++
		case c == '.' && digits > 0:
			dots, digits = dots+1, 0
		default:
			dots, digits = 0, 0
		}
		if dots == 2 && digits > 0 {
			return true
		}
	}
	return false
}

// digestLevel is the compression level. Higher levels save less than 0.2 %.
const digestLevel = 5

// minDeflated is the minimum length of a digest that is compressed. Compression costs a hook
// about 0.2 ms of CPU time; below this length it saves only 16 bytes per row.
const minDeflated = 400

// Pack returns a digest in its stored form: compressed ([]byte) if that is shorter, else as a
// string.
func Pack(digest string) any {
	if len(digest) < minDeflated {
		return digest
	}
	var b bytes.Buffer
	w, err := flate.NewWriterDict(&b, digestLevel, []byte(digestDictionary))
	if err == nil {
		_, err = io.WriteString(w, digest)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil || b.Len() >= len(digest) {
		return digest
	}
	return b.Bytes()
}

// Unpack returns the digest that Pack stored. It returns an error if the stored value is damaged.
func Unpack(stored any) (string, error) {
	packed, ok := stored.([]byte)
	if !ok {
		text, ok := stored.(string)
		if !ok {
			return "", errors.New("a digest is neither a text nor a blob")
		}
		return text, nil
	}
	r := flate.NewReaderDict(bytes.NewReader(packed), []byte(digestDictionary))
	text, err := io.ReadAll(io.LimitReader(r, MaxDigest+1))
	if err == nil && len(text) > MaxDigest {
		err = errors.New("a digest is too long")
	}
	return string(text), err
}

// digestDictionary is the preset dictionary of the compression: text that tools often print, the
// most frequent last. Stored digests depend on it, so it must never change.
const digestDictionary = "diff --git a/ b/\nindex ..100644\n--- a/\n+++ b/\n@@ -0,0 +1, @@\n create mode 100644 \n files changed, insertions(+), deletions(-)\n" +
	"drwxr-xr-x -rw-r--r-- 1 root root  4096 Jan  1 00:00 .\n/home/user/Users/src/project/node_modules/internal/index.ts.js.py.go.rs.md.json.yaml.toml\n" +
	"function const return import export default async await class public static void string number boolean undefined null true false\n" +
	"package func (t *testing.T) if err != nil { return fmt.Errorf(\": %w\", err)\n\t}\n" +
	"the  and of to in is for that with this not from was are be have will should can you command not found: No such file or directory\n" +
	"Exit code 1\nError: error: failed to FAIL: \nfatal: \nwarning: \n--- FAIL: Test (0.00s)\n    _test.go:: expected got \nFAIL\tgithub.com/\t0.0s\n" +
	"=== RUN   Test\n--- PASS: Test (0.00s)\nPASS\nok  \tgithub.com//internal/\t(cached)\t[no test files]\n… more like this\n…\n"
