package observation

// Section is what another part has to tell in the context of a session. Each line
// becomes one item of a list, made safe like the cells of the tables: its first
// line, at most MaxSectionLine characters (observations §9.1).
type Section struct {
	Title string
	Lines []string
	First bool // stands before the observations, else after them
}

// MaxSectionLine is how many characters a line of a Section may have.
const MaxSectionLine = 80

// rows renders the lines; those in which nothing can be seen are left out.
func (s Section) rows() (rows []contextRow) {
	for _, line := range s.Lines {
		if text := cell(line, MaxSectionLine); text != "" {
			rows = append(rows, contextRow{line: "- " + text})
		}
	}
	return rows
}

// cutOther takes the last line of the last section that has one.
func (b *contextBuilder) cutOther() bool {
	for i := len(b.others) - 1; i >= 0; i-- {
		if n := len(b.others[i].Lines); n > 0 {
			b.others[i].Lines = b.others[i].Lines[:n-1]
			return true
		}
	}
	return false
}
