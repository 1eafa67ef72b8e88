package origin

import (
	"strings"
	"unicode"

	"cairn/internal/editlines"
)

const (
	plainLetter  = 8    // letters and digits that make a line distinctive within its file
	rareLetter   = 12   // letters and digits that make a part of a line distinctive
	strongLetter = 14   // letters and digits that make a line rare across files
	joinedLines  = 6    // maximum number of current lines that may have been one line
	maxJoined    = 4096 // maximum bytes of these lines
	splitLength  = 300  // maximum bytes of a current line that may have been several lines
)

// letters counts the letters and digits of a text.
func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// foldedFile holds the current lines of a file, both unchanged and folded.
type foldedFile struct {
	lines, folded []string
	salt          uint64
	squeezed      []string // lines without white space, computed on first use; "" before that
}

func foldFile(lines []string, salt uint64) foldedFile {
	f := foldedFile{lines: lines, folded: make([]string, len(lines)), salt: salt, squeezed: make([]string, len(lines))}
	for i, line := range lines {
		f.folded[i] = editlines.Fold(line)
	}
	return f
}

// lineParts holds other forms in which an edit may have written a current line. It may be a
// part of a longer line, or several lines, or the edit may have changed only a part of it.
type lineParts struct {
	joined  map[uint32]bool        // hashes of several current lines joined into one
	pieces  map[uint32][]linePiece // hashes of pieces of the line
	covered [splitLength + 1]bool
	length  int
}

// linePiece is a piece of the line: the bytes from from up to, not including, to.
type linePiece struct{ from, to int }

// parts prepares the comparison with other forms of a line. It omits pieces whose hash is not
// in known; nil keeps all.
func (f *foldedFile) parts(at int, known map[uint32]bool) *lineParts {
	p := &lineParts{joined: map[uint32]bool{}, pieces: map[uint32][]linePiece{}}
	for first := max(0, at-joinedLines+1); first <= at; first++ {
		var b strings.Builder
		for i := first; i < min(first+joinedLines, len(f.lines)); i++ {
			if b.WriteString(f.squeeze(i)); b.Len() > maxJoined {
				break
			}
			if one := closeList(b.String()); i >= at && f.folded[first] != "" && f.folded[i] != "" && i > first && letters(one) >= plainLetter {
				p.joined[editlines.Salt(editlines.Hash(one), f.salt)] = true
			}
		}
	}
	line := f.folded[at]
	if p.length = len(line); p.length > splitLength {
		p.length = 0
		return p
	}
	for from := range p.length {
		hash := uint64(editlines.HashStart)
		for to := from; to < p.length; to++ {
			if hash = editlines.HashByte(hash, line[to]); line[to] != ',' && line[to] != ';' {
				n := editlines.Salt(hash, f.salt)
				if known != nil && !known[n] {
					continue
				}
				p.pieces[n] = append(p.pieces[n], linePiece{from, to + 1})
			}
		}
		p.covered[from] = line[from] == ',' || line[from] == ';'
	}
	return p
}

// squeeze returns a line without white space.
func (f *foldedFile) squeeze(i int) string {
	if f.squeezed[i] == "" {
		f.squeezed[i] = editlines.Squeeze(f.lines[i])
	}
	return f.squeezed[i]
}

// closeList removes a comma before a closing bracket, and commas and semicolons at the end.
func closeList(s string) string {
	for _, bracket := range [...]string{")", "]", "}"} {
		s = strings.ReplaceAll(s, ","+bracket, bracket)
	}
	return strings.TrimRight(s, ",;")
}

// match reports whether an edit added the line in another form.
func (p *lineParts) match(lines []byte) bool {
	all := editlines.Entries(lines)
	for i, n := range all {
		if n&editlines.Added == 0 {
			continue
		}
		if p.joined[n&^editlines.Added] || p.isSplit(all[i:]) || lines[0]&editlines.Partial != 0 && p.isWithin(all, i) {
			return true
		}
	}
	return false
}

// isSplit reports whether the first two or more of the given lines, joined, form the line.
func (p *lineParts) isSplit(all []uint32) bool {
	if len(all) < 2 || len(p.pieces[all[0]&^editlines.Added]) == 0 {
		return false
	}
	ends := map[int]bool{0: true}
	for i, n := range all {
		next := map[int]bool{}
		for _, s := range p.pieces[n&^editlines.Added] {
			if from := s.from; ends[from] || from > 0 && p.covered[from-1] && ends[from-1] {
				next[s.to] = true
			}
		}
		if next[p.length] && i > 0 {
			return true
		}
		if ends = next; len(ends) == 0 {
			return false
		}
	}
	return false
}

// isWithin reports whether the ith line is a large part of the line. If it omits the beginning
// of the line, it must be the first of its passage. If it omits the end, it must be the last.
func (p *lineParts) isWithin(all []uint32, i int) bool {
	first, last := i == 0 || all[i-1] == 0, i == len(all)-1 || all[i+1] == 0
	for _, s := range p.pieces[all[i]&^editlines.Added] {
		if s.to-s.from < p.length && s.to-s.from >= rareLetter && (s.from == 0 || first) && (s.to == p.length || last) {
			return true
		}
	}
	return false
}
