package observation

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

// What a digest holds (amendments §A.6).
const (
	maxDigest      = 4 << 10 // bytes
	digestFirst    = 5       // lines that are kept at the beginning
	digestLast     = 25      // lines that are kept at the end
	maxDigestLine  = 400     // bytes of one line, where there are many
	digestGap      = "…"     // stands for lines that are left out
	maxMoreLength  = 24      // bytes of "… N more like this" at most
	lineAndNewline = 1
)

// outputDigest returns the digest of an output: its first and last lines and those that
// look like errors, warnings, counts, versions or places in files, at most maxDigest
// bytes. Runs of lines that differ in numbers alone are there once, with their count. An
// output without text returns "".
func outputDigest(lines []printedLine) string {
	all := foldAlike(lines)
	limit := max(maxDigestLine, maxDigest/max(len(all), 1)-len(digestGap)-lineAndNewline)
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
			b.WriteString(digestGap + "\n")
			gap = true
		}
	}
	return strings.TrimSuffix(strings.TrimSuffix(b.String(), digestGap+"\n"), "\n")
}

// digestedLines returns the lines of a digest that were printed.
func digestedLines(digest string) []printedLine {
	return slices.DeleteFunc(printedLines(digest), func(l printedLine) bool { return strings.HasPrefix(l.text, digestGap) })
}

// digestLine is a line of an output, or a run of lines like it.
type digestLine struct {
	text string
	more int // lines like it that follow
	kept bool
}

// size is what the line takes in a digest at most, with a gap after it.
func (l *digestLine) size() int {
	n := len(l.text) + lineAndNewline + len(digestGap) + lineAndNewline
	if l.more > 0 {
		n += maxMoreLength
	}
	return n
}

func (l *digestLine) write(b *strings.Builder) {
	b.WriteString(l.text)
	b.WriteByte('\n')
	if l.more > 0 {
		fmt.Fprintf(b, digestGap+" %d more like this\n", l.more)
	}
}

// foldAlike folds runs of three and more lines that differ in numbers alone.
func foldAlike(lines []printedLine) (all []digestLine) {
	all = make([]digestLine, 0, len(lines))
	last, run := lineHash(0), 0 // the hash of the lines before, and how many there were
	for _, line := range lines {
		if line.masked == 0 || line.masked != last {
			last, run = line.masked, 0
		}
		run++
		if run > 2 {
			if run == 3 { // the second of the run is folded, too
				all = all[:len(all)-1]
				all[len(all)-1].more = 1
			}
			all[len(all)-1].more++
			continue
		}
		all = append(all, digestLine{text: line.text})
	}
	return all
}

// shortLine returns the first limit bytes of a line, less so that no character is cut.
func shortLine(line string, limit int) string {
	if len(line) <= limit {
		return line
	}
	end := limit - len(digestGap)
	for end > 0 && !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + digestGap
}

// chooseLines marks the lines that a digest keeps, the most telling ones first, until it
// is full.
func chooseLines(all []digestLine) {
	room := maxDigest
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
	var ranks ranker
	for i := first; i < last; i++ {
		if rank := ranks.rank(all[i].text); rank < rankOther {
			telling[rank] = append(telling[rank], i)
		}
	}
	for i := len(all) - 1; i >= max(0, len(all)-digestFirst); i-- {
		keep(i)
	}
	for _, i := range telling[rankError] {
		if room < maxDigest/3 { // the rest is for the end, where most tools sum up
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

// Ranks of lines, by how much they tell.
const (
	rankError   = iota
	rankWarning // or a place in a file
	rankCount   // or a version
	rankOther
)

// ranker ranks lines; its zero value is ready for use.
type ranker struct{ lower []byte }

// rank returns how much a line tells.
func (r *ranker) rank(line string) int {
	r.lower = append(r.lower[:0], line...)
	numbers := false
	for i, c := range r.lower {
		if c >= 'A' && c <= 'Z' {
			r.lower[i] = c | 0x20
		}
		numbers = numbers || isDigit(c)
	}
	best := rankOther
	if numbers && strings.IndexByte(line, '%') >= 0 {
		best = rankCount
	}
	for i := range len(r.lower) - 1 {
		if best = min(best, tellingAt(r.lower[i:], numbers)); best == rankError {
			return best
		}
	}
	switch {
	case numbers && best > rankWarning && hasPlace(line):
		return rankWarning
	case numbers && best > rankCount && hasVersion(line):
		return rankCount
	}
	return best
}

// tellingAt returns the rank of a word that the text begins with, wherever the word
// ends. Counts need a number in the line.
func tellingAt(s []byte, numbers bool) int {
	errors, warnings, counts := tellingWords(s[0], s[1])
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

// tellingWords returns the words of each rank that begin with two bytes, separated by |. Ranking looks at
// every byte of an output, so that most of them must end here.
func tellingWords(first, second byte) (errors, warnings, counts string) {
	switch uint(first)<<8 | uint(second) {
	case 'a'<<8 | 'b':
		errors = "abort"
	case 'a'<<8 | 's':
		errors = "assert"
	case 'a'<<8 | 'd':
		counts = "added"
	case 'b'<<8 | 'u':
		counts = "built"
	case 'c'<<8 | 'a':
		errors, warnings = "cannot", "caution"
	case 'c'<<8 | 'o':
		errors, counts = "could not|couldn't|conflict", "coverage|commit"
	case 'c'<<8 | 'h':
		counts = "change"
	case 'c'<<8 | 'r':
		counts = "created"
	case 'd'<<8 | 'e':
		errors, warnings, counts = "denied", "deprecat", "deletion"
	case 'd'<<8 | 'o':
		counts = "done"
	case 'e'<<8 | 'r':
		errors = "error"
	case 'e'<<8 | 'x':
		errors = "exception|expected"
	case 'f'<<8 | 'a':
		errors = "fail|fatal"
	case 'f'<<8 | 'i':
		counts = "file|finished"
	case 'f'<<8 | 'o':
		counts = "found"
	case 'i'<<8 | 'n':
		errors, counts = "invalid", "insertion|install"
	case 'k'<<8 | 'i':
		errors = "killed"
	case 'l'<<8 | 'i':
		counts = "listening|line"
	case 'm'<<8 | 'a':
		counts = "match"
	case 'm'<<8 | 'i':
		errors = "mismatch|missing"
	case 'n'<<8 | 'o':
		errors = "not found|no such"
	case 'o'<<8 | 'k':
		counts = "ok "
	case 'p'<<8 | 'a':
		errors, counts = "panic", "pass"
	case 'p'<<8 | 'o':
		counts = "port"
	case 'r'<<8 | 'e':
		errors, counts = "refused", "removed|result"
	case 'r'<<8 | 'o':
		counts = "row"
	case 's'<<8 | 'e':
		errors, counts = "segmentation", "second"
	case 's'<<8 | 'k':
		warnings = "skipp"
	case 't'<<8 | 'e':
		counts = "test"
	case 't'<<8 | 'i':
		errors = "timed out|timeout"
	case 't'<<8 | 'o':
		warnings, counts = "todo", "total"
	case 't'<<8 | 'r':
		errors = "traceback"
	case 'u'<<8 | 'n':
		errors = "undefined|unexpected"
	case 'u'<<8 | 'p':
		counts = "updated"
	case 'v'<<8 | 'e':
		counts = "version"
	case 'w'<<8 | 'a':
		warnings = "warn"
	case 0xE29C, 0xC397: // of UTF-8
		errors = "✗|✖|✘|×"
	}
	return errors, warnings, counts
}

// beginsWithAny reports whether a text begins with one of the words.
func beginsWithAny(s []byte, words string) bool {
	for words != "" {
		var word string
		word, words, _ = strings.Cut(words, "|")
		if len(s) >= len(word) && string(s[:len(word)]) == word {
			return true
		}
	}
	return false
}

// hasPlace reports whether a line names a place in a file: a name with an extension, a
// colon and a number.
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

// hasVersion reports whether a line holds three numbers joined by dots.
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

// minDeflated is how long a digest is at least that is worth deflating.
const minDeflated = 160

// packDigest returns a digest as it is stored: deflated if that makes it shorter.
func packDigest(digest string) any {
	if len(digest) < minDeflated {
		return digest
	}
	var b bytes.Buffer
	w, err := flate.NewWriterDict(&b, flate.DefaultCompression, []byte(digestDictionary))
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

// unpackDigest returns a digest that packDigest stored, an error if it is damaged.
func unpackDigest(stored any) (string, error) {
	packed, ok := stored.([]byte)
	if !ok {
		text, ok := stored.(string)
		if !ok {
			return "", errors.New("a digest is neither a text nor a blob")
		}
		return text, nil
	}
	r := flate.NewReaderDict(bytes.NewReader(packed), []byte(digestDictionary))
	text, err := io.ReadAll(io.LimitReader(r, maxDigest+1))
	if err == nil && len(text) > maxDigest {
		err = errors.New("a digest is too long")
	}
	return string(text), err
}

// digestDictionary is what deflating a digest begins with: what tools often print, the
// most frequent last. Digests in stores depend on it, so it never changes.
const digestDictionary = "Traceback (most recent call last):\n  File \"/usr/lib/python3/dist-packages/__init__.py\", line , in <module>\n" +
	"npm ERR! code npm warn deprecated added packages, and audited packages in \nfound 0 vulnerabilities\n" +
	"   Compiling  v0.1.0 (\n    Finished `dev` profile [unoptimized + debuginfo] target(s) in \nwarning: unused variable: `\n" +
	"thread 'main' panicked at src/main.rs:\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n" +
	"test result: ok. passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in \n" +
	"============================= test session starts ==============================\nplatform linux -- Python 3.\ncollected items\n" +
	"Tests:       passed, total\nSnapshots:   0 total\nTime:        s\nTest Suites: \n" +
	"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\n{\"id\":\"\",\"name\":\"\",\"type\":\"\",\"url\":\"https://github.com/\",\"status\":\"\",\"message\":\"\"}\n" +
	"remote: Resolving deltas: 100% (/), completed with local objects.\nTo github.com:\n   main -> main\nEverything up-to-date\n" +
	"From https://github.com/\n * [new branch]      -> origin/\nAlready up to date.\nAuto-merging \nCONFLICT (content): Merge conflict in \n" +
	"commit \nAuthor:  <@users.noreply.github.com>\nDate:   Mon Tue Wed Thu Fri Sat Sun Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec 2026 +0000\n\n    " +
	"On branch main\nYour branch is up to date with 'origin/main'.\n\nChanges to be committed:\n  (use \"git restore --staged <file>...\" to unstage)\n" +
	"Changes not staged for commit:\n  (use \"git add <file>...\" to update what will be committed)\n  (use \"git restore <file>...\" to discard changes in working directory)\n" +
	"\tmodified:   \n\tnew file:   \n\tdeleted:    \nUntracked files:\n  (use \"git add <file>...\" to include in what will be committed)\n" +
	"no changes added to commit (use \"git add\" and/or \"git commit -a\")\nnothing to commit, working tree clean\n" +
	"diff --git a/ b/\nindex ..100644\n--- a/\n+++ b/\n@@ -0,0 +1, @@\n create mode 100644 \n files changed, insertions(+), deletions(-)\n" +
	"drwxr-xr-x -rw-r--r-- 1 root root  4096 Jan  1 00:00 .\n/home/user/Users/src/project/node_modules/internal/index.ts.js.py.go.rs.md.json.yaml.toml\n" +
	"function const return import export default async await class public static void string number boolean undefined null true false\n" +
	"package func (t *testing.T) if err != nil { return fmt.Errorf(\": %w\", err)\n\t}\n" +
	"the  and of to in is for that with this not from was are be have will should can you command not found: No such file or directory\n" +
	"Exit code 1\nError: error: failed to FAIL: \nfatal: \nwarning: \n--- FAIL: Test (0.00s)\n    _test.go:: expected got \nFAIL\tgithub.com/\t0.0s\n" +
	"=== RUN   Test\n--- PASS: Test (0.00s)\nPASS\nok  \tgithub.com//internal/\t(cached)\t[no test files]\n… more like this\n…\n"
