package sessionstart

import (
	"cairn/internal/observation/ledger"
	"cairn/internal/oneline"
)

// Section is a section of another part in the context of a session. Each line becomes one list
// item. Like a table cell, it is sanitized and reduced to its first line and MaxSectionLine
// characters (observations §9.1).
type Section struct {
	Title string
	Lines []string
	First bool // place it before all other sections; else after the user's wishes
}

// MaxSectionLine is the maximum number of characters in a line of a Section.
const MaxSectionLine = 80

// rows renders the lines and omits lines without visible text.
func (s Section) rows() (rows []ledger.Line) {
	for _, line := range s.Lines {
		if text := oneline.Cell(line, MaxSectionLine); text != "" {
			rows = append(rows, ledger.Line{Text: "- " + text})
		}
	}
	return rows
}

// cutOther removes the last line of the last section that still has lines. It returns the
// number of bytes saved, 0 if no section has a line.
func (b *contextBuilder) cutOther() int {
	for i := len(b.others) - 1; i >= 0; i-- {
		if n := len(b.others[i].Lines); n > 0 {
			last := b.others[i].Lines[n-1]
			b.others[i].Lines = b.others[i].Lines[:n-1]
			return len("- \n") + len(oneline.Cell(last, MaxSectionLine))
		}
	}
	return 0
}
