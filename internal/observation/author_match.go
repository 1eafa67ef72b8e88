package observation

import (
	"encoding/binary"
	"strings"
	"unicode"
)

const (
	plainLetter  = 8    // letters and digits from which on a line is told from others of its file
	rareLetter   = 12   // letters and digits from which on a part of a line is
	strongLetter = 14   // letters and digits from which on few files have a line
	joinedLines  = 6    // lines of today that may have been one line
	maxJoined    = 4096 // bytes of these
	splitLength  = 300  // bytes of a line of today that may have been several
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

// foldedFile are the lines of a file of today, as they are and folded.
type foldedFile struct {
	lines, folded []string
	salt          uint64
	squeezed      []string // lines without white space, made when they are needed; "" for one that was not
}

func foldFile(lines []string, salt uint64) foldedFile {
	f := foldedFile{lines: lines, folded: make([]string, len(lines)), salt: salt, squeezed: make([]string, len(lines))}
	for i, line := range lines {
		f.folded[i] = foldLine(line)
	}
	return f
}

// entries are the stored lines of an edit.
func entries(lines []byte) []uint32 {
	if len(lines) == 0 {
		return nil
	}
	out := make([]uint32, 0, len(lines)/4)
	for rest := lines[1:]; len(rest) >= 4; rest = rest[4:] {
		out = append(out, binary.LittleEndian.Uint32(rest))
	}
	return out
}

// lineParts are other forms in which an edit may have written a line of today: as part
// of a longer line, as several lines, or within a line.
type lineParts struct {
	joined  map[uint32]bool        // hashes of lines of today taken as one line
	pieces  map[uint32][]linePiece // hashes of pieces of the line
	covered [splitLength + 1]bool
	length  int
}

// linePiece is a piece of the line: from its byte from up to its byte to.
type linePiece struct{ from, to int }

// parts prepares the comparison of a line in other forms. Forms whose hash is not in known are
// left out; nil keeps all.
func (f *foldedFile) parts(at int, known map[uint32]bool) *lineParts {
	p := &lineParts{joined: map[uint32]bool{}, pieces: map[uint32][]linePiece{}}
	for first := max(0, at-joinedLines+1); first <= at; first++ {
		var b strings.Builder
		for i := first; i < min(first+joinedLines, len(f.lines)); i++ {
			if b.WriteString(f.squeeze(i)); b.Len() > maxJoined {
				break
			}
			if one := closeList(b.String()); i >= at && f.folded[first] != "" && f.folded[i] != "" && i > first && letters(one) >= plainLetter {
				p.joined[saltLine(foldedHash(one), f.salt)] = true
			}
		}
	}
	line := f.folded[at]
	if p.length = len(line); p.length > splitLength {
		p.length = 0
		return p
	}
	for from := range p.length {
		hash := uint64(hashStart)
		for to := from; to < p.length; to++ {
			if hash = hashByte(hash, line[to]); line[to] != ',' && line[to] != ';' {
				n := saltLine(hash, f.salt)
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

// squeeze is a line without white space.
func (f *foldedFile) squeeze(i int) string {
	if f.squeezed[i] == "" {
		f.squeezed[i] = squeezeLine(f.lines[i])
	}
	return f.squeezed[i]
}

// closeList removes the comma before a closing bracket, and commas and semicolons at the
// end.
func closeList(s string) string {
	for _, bracket := range [...]string{")", "]", "}"} {
		s = strings.ReplaceAll(s, ","+bracket, bracket)
	}
	return strings.TrimRight(s, ",;")
}

// match reports whether an edit added the line in another form.
func (p *lineParts) match(lines []byte) bool {
	all := entries(lines)
	for i, n := range all {
		if n&lineAdded == 0 {
			continue
		}
		if p.joined[n&^lineAdded] || p.isSplit(all[i:]) || lines[0]&linesPartial != 0 && p.isWithin(all, i) {
			return true
		}
	}
	return false
}

// isSplit reports whether the line is the first of the given lines, joined.
func (p *lineParts) isSplit(all []uint32) bool {
	if len(all) < 2 || len(p.pieces[all[0]&^lineAdded]) == 0 {
		return false
	}
	ends := map[int]bool{0: true}
	for i, n := range all {
		next := map[int]bool{}
		for _, s := range p.pieces[n&^lineAdded] {
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

// isWithin reports whether a line at the edge of a passage is a large part of the line.
func (p *lineParts) isWithin(all []uint32, i int) bool {
	first, last := i == 0 || all[i-1] == 0, i == len(all)-1 || all[i+1] == 0
	for _, s := range p.pieces[all[i]&^lineAdded] {
		if s.to-s.from < p.length && s.to-s.from >= rareLetter && (s.from == 0 || first) && (s.to == p.length || last) {
			return true
		}
	}
	return false
}
