package shell

import "strings"

// Form is the normal form of a command, to be compared with many.
type Form struct {
	Text string
	word string // its longest, which commands of another form most often lack
}

func NewForm(command string) (f Form) {
	f.Text = Normal(command)
	for word := range strings.FieldsSeq(f.Text) {
		if len(word) > len(f.word) {
			f.word = word
		}
	}
	return f
}

// MayBe tells, without taking a command apart, whether it may have this form.
func (f *Form) MayBe(command string) bool { return strings.Contains(command, f.word) }

func (f *Form) Is(command string) bool {
	return f.MayBe(command) && Normal(command) == f.Text
}
