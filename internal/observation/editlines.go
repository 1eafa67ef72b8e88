package observation

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	linesWhole   = 1 << iota // the lines are the whole file
	linesCut                 // lines after the limits are missing
	linesPartial             // a passage may begin and end within a line
	linesNew                 // the call created the file
)

// lineAdded is the bit of lines that the call added. The others were there before.
const lineAdded = 1

// editLines are the lines of one call before they are salted. The zero value means that
// the text of the call is not known.
type editLines struct {
	flags byte
	lines []editLine // the zero editLine separates passages
}

// editLine is one line: its hash without salt, and whether the call added it.
type editLine struct {
	hash  uint64
	added bool
}

// lineHashes are the hashes of the lines of a text that are not blank.
func lineHashes(text string) (out []uint64) {
	for line := range strings.Lines(text) {
		if folded := foldLine(line); folded != "" {
			out = append(out, foldedHash(folded))
		}
	}
	return out
}

// addedLines reports which lines after an edit it added: not those at both ends that were
// there before, nor, between them, as many as were there before.
func addedLines(before, after []uint64) []editLine {
	out := make([]editLine, len(after))
	for i, hash := range after {
		out[i].hash = hash
	}
	first := 0
	for first < min(len(before), len(after)) && before[first] == after[first] {
		first++
	}
	last := len(after)
	for n := len(before); n > first && last > first && before[n-1] == after[last-1]; n-- {
		last--
		before = before[:n-1]
	}
	had := map[uint64]int{}
	for _, hash := range before[first:] {
		had[hash]++
	}
	for i := first; i < last; i++ {
		had[after[i]]--
		out[i].added = had[after[i]] < 0
	}
	return out
}

// foldLine returns a line without what a formatter changes: white space, the kind of
// quotes, and commas and semicolons at its end. It returns "" for a blank line.
func foldLine(line string) string { return strings.TrimRight(squeezeLine(line), ",;") }

// squeezeLine is foldLine for a line that continues: commas and semicolons stay.
func squeezeLine(line string) string {
	clean := true
	for i := 0; i < len(line) && clean; i++ {
		c := line[i]
		clean = c > ' ' && c < utf8.RuneSelf && c != '\'' && c != '`'
	}
	if !clean {
		line = strings.Map(func(r rune) rune {
			switch {
			case r == '\'' || r == '`':
				return '"'
			case unicode.IsSpace(r), r == 0, r == '\uFEFF':
				return -1
			}
			return r
		}, line)
	}
	return line
}

// foldedHash is the 64-bit FNV-1a hash of a folded line.
func foldedHash(folded string) uint64 {
	h := uint64(hashStart)
	for i := range len(folded) {
		h = hashByte(h, folded[i])
	}
	return h
}

const hashStart = 14695981039346656037

func hashByte(h uint64, b byte) uint64 { return (h ^ uint64(b)) * 1099511628211 }

// saltLine returns the hash as it is stored: its upper 31 bits, never 0, without lineAdded.
func saltLine(hash, salt uint64) uint32 {
	h := hash ^ salt
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return max(uint32(h>>32)&^lineAdded, lineAdded<<1)
}

// salted is the form in which lines are stored.
func (l editLines) salted(salt uint64) []byte {
	out := make([]byte, 1, 1+4*len(l.lines))
	out[0] = l.flags
	for i, line := range l.lines {
		var n uint32
		switch {
		case line != editLine{}:
			if n = saltLine(line.hash, salt); line.added {
				n |= lineAdded
			}
		case i == len(l.lines)-1:
			continue // nothing follows
		}
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return out
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
