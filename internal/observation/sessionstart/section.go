package sessionstart

import (
	"cairn/internal/observation/ledger"
	"cairn/internal/oneline"
)

// Section is another part's section in the context of a session. Each line becomes one
// item of a list, made safe like the cells of the tables: its first line, at most
// MaxSectionLine characters (observations §9.1).
type Section struct {
	Title string
	Lines []string
	First bool // before all other sections; else after the user's wishes
}

// MaxSectionLine is how many characters a line of a Section may have.
const MaxSectionLine = 80

// rows renders the lines; those in which nothing can be seen are left out.
func (s Section) rows() (rows []ledger.Line) {
	for _, line := range s.Lines {
		if text := oneline.Cell(line, MaxSectionLine); text != "" {
			rows = append(rows, ledger.Line{Text: "- " + text})
		}
	}
	return rows
}

// cutOther removes the last line of the last section that has one and returns how many
// bytes that saves, 0 if no section has a line.
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
