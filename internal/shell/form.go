package shell

import "strings"

// Form is the normalised text of a command. It makes comparisons with many commands fast.
type Form struct {
	Text string
	word string // the longest word, which most other commands do not contain
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

// MayBe reports whether a command may have this form, without parsing it. If it returns false, the
// command does not have this form.
func (f *Form) MayBe(command string) bool { return strings.Contains(command, f.word) }

func (f *Form) Is(command string) bool {
	return f.MayBe(command) && Normal(command) == f.Text
}
