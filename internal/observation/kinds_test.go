package observation

import (
	"maps"
	"strings"
	"testing"

	"cairn/internal/redact"
)

func TestMarksAreCountedByTheFormOfTheSecretBefore(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"export API_KEY=M":                           formNamed,
		`{"password": "M"}`:                          formNamed,
		"curl -H 'Authorization: Bearer M' x":        formHeader,
		"git clone https://ana:M@example.org/a":      formURL,
		"git clone https://M@example.org/a":          formURL,
		"mysql --password M":                         formOption,
		"mysql -pM":                                  formOption,
		"the token is\nM":                            formOther,
		"it was M, he said":                          formOther,
		"first line: with a colon\nthen the value M": formOther,
	} {
		got := map[string]int{}
		countMarks(strings.ReplaceAll(text, "M", redact.Mark), got)
		if !maps.Equal(got, map[string]int{want: 1}) {
			t.Errorf("%q: %v, want %s", text, got, want)
		}
	}
	got := map[string]int{}
	countMarks("a "+redact.PrivateMark+" b "+redact.Mark+" c TOKEN="+redact.Mark, got)
	if !maps.Equal(got, map[string]int{formPrivate: 1, formOther: 1, formNamed: 1}) {
		t.Errorf("several: %v", got)
	}
}
