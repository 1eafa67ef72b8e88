package editlines

import (
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	Whole   = 1 << iota // the lines are the whole file
	IsCut               // lines beyond the limits are missing
	Partial             // a passage may begin and end within a line
	New                 // the call created the file
)

// Added is the bit of lines that the call added. The other lines existed before.
const Added = 1

// Lines contains the lines of one call before they are salted. The zero value means that the text
// of the call is unknown.
type Lines struct {
	Flags byte
	Lines []Line // the zero Line separates passages
}

// Line is one line: its hash without salt, and whether the call added it.
type Line struct {
	hash  uint64
	added bool
}

// Hashes returns the hashes of the non-blank lines of a text.
func Hashes(text string) (out []uint64) {
	for line := range strings.Lines(text) {
		if folded := Fold(line); folded != "" {
			out = append(out, Hash(folded))
		}
	}
	return out
}

// AddedLines returns the lines after an edit and marks those that it added. Common lines at both
// ends are not marked. Between them, a line is marked if it occurs more often than before.
func AddedLines(before, after []uint64) []Line {
	out := make([]Line, len(after))
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

// Fold returns a line without the details that a formatter changes: white space, the kind of
// quotes, and commas and semicolons at its end. It returns "" for a blank line.
func Fold(line string) string { return strings.TrimRight(Squeeze(line), ",;") }

// Squeeze is Fold for a line that continues: it keeps commas and semicolons at the end.
func Squeeze(line string) string {
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

// Hash returns the 64-bit FNV-1a hash of a folded line.
func Hash(folded string) uint64 {
	h := uint64(HashStart)
	for i := range len(folded) {
		h = HashByte(h, folded[i])
	}
	return h
}

const HashStart = 14695981039346656037

func HashByte(h uint64, b byte) uint64 { return (h ^ uint64(b)) * 1099511628211 }

// Salt returns the stored form of a hash: its upper 31 bits, never 0, without the bit Added.
func Salt(hash, salt uint64) uint32 {
	h := hash ^ salt
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return max(uint32(h>>32)&^Added, Added<<1)
}

// Salted returns the stored form of the lines.
func (l Lines) Salted(salt uint64) []byte {
	out := make([]byte, 1, 1+4*len(l.Lines))
	out[0] = l.Flags
	for i, line := range l.Lines {
		var n uint32
		switch {
		case line != Line{}:
			if n = Salt(line.hash, salt); line.added {
				n |= Added
			}
		case i == len(l.Lines)-1:
			continue // a separator at the end is omitted
		}
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return out
}

// Entries returns the stored lines of an edit, or nil without any.
func Entries(lines []byte) []uint32 {
	if len(lines) == 0 {
		return nil
	}
	out := make([]uint32, 0, len(lines)/4)
	for rest := lines[1:]; len(rest) >= 4; rest = rest[4:] {
		out = append(out, binary.LittleEndian.Uint32(rest))
	}
	return out
}
