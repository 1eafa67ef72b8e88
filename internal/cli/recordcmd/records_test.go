package recordcmd

import (
	"strings"
	"testing"

	"cairn/internal/cli/command"
	"cairn/internal/record"
)

func ref(id, parent string, state record.State, title string) record.Ref {
	r := record.Ref{ID: id, Type: "note", Title: title, State: state}
	if parent != "" {
		r.ParentID = &parent
	}
	return r
}

func TestTreeDrawsEveryRecordOnceWhateverIsMissing(t *testing.T) {
	t.Parallel()
	refs := []record.Ref{
		ref("R001", "", record.Open, "root"),
		ref("R002", "R001", record.Later, "first \x1b[31mchild\x07"),
		ref("R004", "R002", record.Open, "grandchild"),
		ref("R003", "R001", record.Resolved, "second child"),
		ref("R007", "R006", record.Discarded, "its parent is not listed"),
	}
	refs[3].Drifted = true
	var out strings.Builder
	if err := drawTree(&out, refs); err != nil {
		t.Fatal(err)
	}
	want := "R001 OPEN      note: root\n" +
		"├─ R002 LATER     note: first child\n" +
		"│  └─ R004 OPEN      note: grandchild\n" +
		"└─ R003 RESOLVED  note: second child (drifted)\n" +
		"R007 DISCARDED note: its parent is not listed\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestTreeOfSomeStatesKeepsWhatIsAboveThem(t *testing.T) {
	t.Parallel()
	refs := []record.Ref{
		ref("R001", "", record.Resolved, ""), ref("R002", "R001", record.Resolved, ""), ref("R003", "R002", record.Open, ""),
		ref("R004", "R001", record.Later, ""), ref("R005", "", record.Later, ""),
	}
	var ids []string
	for _, r := range withStates(refs, []record.State{record.Open}) {
		ids = append(ids, r.ID)
	}
	if got := strings.Join(ids, " "); got != "R001 R002 R003" {
		t.Errorf("kept %s", got)
	}
	if all := withStates(refs, nil); len(all) != len(refs) {
		t.Errorf("kept %d of all", len(all))
	}
	if none := withStates(nil, nil); none == nil {
		t.Error("nothing is nil")
	}
}

func TestBlocksEndInANewlineAndHoldNoControlCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "a": "a\n", "a\n": "a\n", "a\n\nb": "a\n\nb\n", "\ta\r\n\x1b[2Jb\x00": "    a\nb\n",
	} {
		if got := command.Block(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
