package observation

import "strings"

// commandForm is the normal form of a command, to be compared with many.
type commandForm struct {
	text string
	word string // its longest, which commands of another form most often lack
}

func newCommandForm(command string) (f commandForm) {
	f.text = normalCommand(command)
	for word := range strings.FieldsSeq(f.text) {
		if len(word) > len(f.word) {
			f.word = word
		}
	}
	return f
}

// mayBe tells, without taking a command apart, whether it may have this form.
func (f *commandForm) mayBe(command string) bool { return strings.Contains(command, f.word) }

func (f *commandForm) is(command string) bool {
	return f.mayBe(command) && normalCommand(command) == f.text
}
