package observation

import (
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
)

const (
	nearLines   = 3   // lines above and below that are compared
	nearStep    = 4   // lines of an edit among which the next of them is looked for
	blockLines  = 12  // how far a line that tells something may be, if all lines between are equal, too
	plainLetter = 8   // letters and digits from which on a line tells something
	rareLetter  = 12  // from which on it does so without the lines near it
	joinedLines = 6   // of today that may have been one line
	splitLength = 300 // bytes of a line of today that may have been several
)

// lineQuery is a line of a file of today with the lines near it.
type lineQuery struct {
	folded       string
	hash         uint32 // salted
	letters      int
	count        int        // lines of the file that are equal to it
	above, below []nearLine // the nearest first, blockLines of them
	twin         bool       // an equal line of the file has the same lines near it
	salt         uint64
}

// nearLine is a line near the one that is meant.
type nearLine struct {
	hash   uint32
	weight int // 2 if the file has it once and it tells something, else 1
}

// letters counts the letters and digits of a text.
func letters(s string) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

// foldedFile are the folded lines of a file, with how often each is there.
type foldedFile struct {
	lines, folded []string
	count         map[string]int
	salt          uint64
}

func foldLines(lines []string, salt uint64) foldedFile {
	f := foldedFile{lines, make([]string, len(lines)), map[string]int{}, salt}
	for i, line := range lines {
		f.folded[i] = foldLine(line)
		f.count[f.folded[i]]++
	}
	return f
}

// query describes a line of the file. A blank line has the hash 0.
func (f *foldedFile) query(at int) lineQuery {
	folded := f.folded[at]
	if folded == "" {
		return lineQuery{}
	}
	q := lineQuery{
		folded: folded, hash: saltLine(lineHash(folded), f.salt), letters: letters(folded), count: f.count[folded],
		above: f.near(at, -1), below: f.near(at, 1), salt: f.salt,
	}
	for i := 0; q.count > 1 && i < len(f.folded) && !q.twin; i++ {
		q.twin = i != at && f.folded[i] == folded && sameNear(q.above, f.near(i, -1)) && sameNear(q.below, f.near(i, 1))
	}
	return q
}

// isRare reports whether the file has the line once and the line tells something.
func (q *lineQuery) isRare() bool { return q.count == 1 && q.letters >= plainLetter }

func sameNear(a, b []nearLine) bool {
	a, b = a[:min(len(a), nearLines)], b[:min(len(b), nearLines)]
	return slices.EqualFunc(a, b, func(x, y nearLine) bool { return x.hash == y.hash })
}

// near returns the lines above (step -1) or below (step 1) that are not blank.
func (f *foldedFile) near(at, step int) (out []nearLine) {
	for i := at + step; i >= 0 && i < len(f.folded) && len(out) < blockLines; i += step {
		folded := f.folded[i]
		if folded == "" {
			continue
		}
		n := nearLine{saltLine(lineHash(folded), f.salt), 1}
		if f.count[folded] == 1 && letters(folded) >= plainLetter {
			n.weight = 2
		}
		out = append(out, n)
	}
	return out
}

// lineMatch tells how well an edit fits a line.
type lineMatch struct {
	found    bool // the edit has the line
	added    bool // and added it
	score    int  // weights of the lines near it that the edit has near it, too
	strong   bool // the edit has the line in one block with a line that tells something
	conflict bool // but another line where today a line is that tells something
	part     bool // the edit has a part of the line, or the line in another number of lines
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

// has reports whether the line is among the stored lines.
func (q *lineQuery) has(lines []byte) bool {
	for rest := lines[min(1, len(lines)):]; len(rest) >= 4; rest = rest[4:] {
		if binary.LittleEndian.Uint32(rest)&^lineAdded == q.hash {
			return true
		}
	}
	return false
}

// match compares the line with the stored lines of an edit. Of several places the best
// counts.
func (q *lineQuery) match(lines []byte) (best lineMatch) {
	if !q.has(lines) {
		return best
	}
	all := entries(lines)
	for i, n := range all {
		if n&^lineAdded != q.hash {
			continue
		}
		m := lineMatch{found: true, added: n&lineAdded != 0}
		m.near(all, i, -1, q.above)
		m.near(all, i, 1, q.below)
		if !best.found || m.score > best.score || m.score == best.score && m.added && !best.added {
			best = m
		}
	}
	return best
}

// near adds to a match the lines near it in one direction. The edit may have others
// between them.
func (m *lineMatch) near(all []uint32, at, step int, want []nearLine) {
	for n, i := 0, at+step; n < len(want) && i >= 0 && i < len(all) && all[i]&^lineAdded == want[n].hash; n, i = n+1, i+step {
		m.strong = m.strong || want[n].weight > 1
	}
	more := at+step >= 0 && at+step < len(all) && all[at+step] != 0
	for _, w := range want[:min(len(want), nearLines)] {
		found := false
		for i, n := at+step, 0; i >= 0 && i < len(all) && all[i] != 0 && n < nearStep && !found; i, n = i+step, n+1 {
			if found = all[i]&^lineAdded == w.hash; found {
				m.score += w.weight
				at = i
			}
		}
		m.conflict = m.conflict || !found && more && w.weight > 1
	}
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

// parts prepares the comparison of a line in other forms.
func (f *foldedFile) parts(at int) *lineParts {
	p := &lineParts{joined: map[uint32]bool{}, pieces: map[uint32][]linePiece{}}
	for first := max(0, at-joinedLines+1); first <= at; first++ {
		var b strings.Builder
		for i := first; i < min(first+joinedLines, len(f.lines)); i++ {
			b.WriteString(squeezeLine(f.lines[i]))
			if one := closeList(b.String()); i >= at && f.folded[first] != "" && f.folded[i] != "" && i > first && letters(one) >= plainLetter {
				p.joined[saltLine(lineHash(one), f.salt)] = true
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
				p.pieces[n] = append(p.pieces[n], linePiece{from, to + 1})
			}
		}
		p.covered[from] = line[from] == ',' || line[from] == ';'
	}
	return p
}

// closeList removes the comma before a closing bracket, and commas and semicolons at the
// end.
func closeList(s string) string {
	return strings.TrimRight(strings.NewReplacer(",)", ")", ",]", "]", ",}", "}").Replace(s), ",;")
}

// match compares the other forms of a line with the stored lines of an edit.
func (p *lineParts) match(lines []byte) lineMatch {
	if len(lines) == 0 {
		return lineMatch{}
	}
	all := entries(lines)
	for i, n := range all {
		if n == 0 {
			continue
		}
		switch {
		case p.joined[n&^lineAdded], p.isSplit(all[i:]):
			return lineMatch{found: true, added: n&lineAdded != 0, strong: true, part: true}
		case lines[0]&linesPartial != 0 && n&lineAdded != 0 && p.isWithin(all, i):
			return lineMatch{found: true, added: true, part: true}
		}
	}
	return lineMatch{}
}

// isSplit reports whether the line is the first of the given lines, joined.
func (p *lineParts) isSplit(all []uint32) bool {
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
		if s.to-s.from >= rareLetter && (s.from == 0 || first) && (s.to == p.length || last) {
			return true
		}
	}
	return false
}
