package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cairn"
)

// TestAnArchiveThatPeopleChangedIsRestoredAsFarAsItGoes (mail §14, §15.3) restores an
// archive with hand-edited files and duplicate numbers. They are listed, and everything
// else is restored unchanged. An archive of a newer cairn is refused, and the error names
// its format.
func TestAnArchiveThatPeopleChangedIsRestoredAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.letters(6)
	h.drain()
	h.wantAgreement()
	whole := h.mailLines()
	archive := filepath.Join(h.dataDir(), "archive", "shop")
	letters := mustGlob(t, filepath.Join(archive, "messages", "2*", "*", "*__letter-*.md"))
	if len(letters) != 6 {
		t.Fatal(letters)
	}
	slices.Sort(letters)
	read := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	put := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	commit := func() { // changes only in the working tree do not override main
		t.Helper()
		if out, err := gitIn(archive, "commit", "--all", "--quiet", "-m", "By hand"); err != nil {
			t.Fatal(err, out)
		}
	}
	restored := func() (r cairn.ReindexResult, e ending) {
		t.Helper()
		for _, file := range mustGlob(t, h.db()+"*") {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		e = h.run(h.command("reconcile", "--reindex", "--json"), nil)
		if err := json.Unmarshal([]byte(e.stdout), &r); err != nil && e.code == 0 {
			t.Fatalf("%v: %s", err, e.stdout)
		}
		return r, e
	}

	if r, e := restored(); e.code != 0 || len(r.Conflicts)+len(r.Unparseable) > 0 || !slices.Equal(h.mailLines(), whole) {
		t.Errorf("untouched: %+v", r)
	}
	h.drain()
	h.wantAgreement()

	edited, copied := letters[2], filepath.Join(filepath.Dir(letters[3]), "mine.md")
	was := read(edited)
	put(edited, strings.Replace(was, `"from"`, "# who", 1))
	put(copied, strings.Replace(read(letters[3]), `"uid": "`, `"uid": "0`, 1)) // the same number, for another message
	commit()
	r, e := restored()
	var listed []string
	for _, u := range append(r.Unparseable, r.Conflicts...) {
		listed = append(listed, u.Path)
		if u.Reason == "" || u.Project != "shop" {
			t.Errorf("%+v", u)
		}
	}
	rel := func(path string) string {
		out, err := filepath.Rel(archive, path)
		if err != nil {
			t.Error(err)
		}
		return filepath.ToSlash(out)
	}
	for _, path := range []string{edited, copied} {
		if e.code != 0 || !slices.Contains(listed, rel(path)) {
			t.Errorf("exit %d, %s is not listed: %v, %s", e.code, rel(path), listed, e.stderr)
		}
	}
	unplaced := func(lines []string) []string { // a lost message leaves no gap in the numbering of its month
		return strings.SplitAfter(regexp.MustCompile(`"ordinal":\d+,`).ReplaceAllString(strings.Join(lines, ""), ""), "\n")
	}
	now := unplaced(h.mailLines())
	lost := slices.DeleteFunc(unplaced(whole), func(line string) bool { return slices.Contains(now, line) })
	if len(lost) != 2 || !strings.Contains(lost[0], "letter 2") || !strings.Contains(lost[1], `"kind":"mail.delivery"`) {
		t.Errorf("not restored: %q", lost)
	}
	h.check()

	put(edited, was)
	if err := os.Remove(copied); err != nil {
		t.Fatal(err)
	}
	about := filepath.Join(archive, "project.json")
	put(about, strings.Replace(read(about), `"format": 1`, `"format": 7`, 1))
	commit()
	if _, e := restored(); e.code != 2 || !strings.Contains(e.stderr, "format 7") || !strings.Contains(e.stderr, "update cairn") {
		t.Errorf("a newer archive: exit %d, %s", e.code, e.stderr)
	}
	if lines := h.mailLines(); len(lines) > 0 {
		t.Errorf("of a newer archive was restored: %q", lines)
	}
	put(about, strings.Replace(read(about), `"format": 7`, `"format": 1`, 1))
	commit()
	if r, e := restored(); e.code != 0 || len(r.Conflicts)+len(r.Unparseable) > 0 || !slices.Equal(h.mailLines(), whole) {
		t.Errorf("put right: %+v, %s", r, e.stderr)
	}
	if _, err := os.Stat(copied); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
