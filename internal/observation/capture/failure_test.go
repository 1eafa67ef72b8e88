package capture

import (
	"strings"
	"testing"

	"cairn/internal/observation"
	"cairn/internal/shell"
)

func TestRowsOfEarlierVersionsShowTheLineThatSaysWhy(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		"":            "",
		"Exit code 1": "",
		"Exit code 1\n\n==== FAILURES ====\nE       assert 4 == 5\n==== 1 failed ====": "assert 4 == 5",
		"assert 4 == 5\n==== FAILURES ====\nerror: other":                              "assert 4 == 5", // as this version stores it
		"\n  boom\nerror: other": "boom",
	} {
		if got := observation.Reason("python -m pytest", stored); got != want {
			t.Errorf("%q: got %q, want %q", stored, got, want)
		}
	}
}

func TestTheProgramsOfACommandChooseTheRules(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"cd web && FOO=1 npx jest --ci src":    "npx jest src",
		"sudo /usr/bin/python3 -m pytest x.py": "python3 pytest x.py",
		"echo hi; ./gradlew test | tail -3":    "gradlew test tail",
		"":                                     "",
	} {
		if got := strings.Join(shell.ProgramWords(line, "Bash"), " "); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// The line is found in the middle of a long output and redacted together with its context.
func TestTheLineOfALongOutputIsRedacted(t *testing.T) {
	t.Parallel()
	secret := "hunter2" + strings.Repeat("x", 20)
	filler := strings.Repeat("  CC  drivers/net/common.o\n", 12_000)
	output := filler + "error: cannot log in with password=" + secret + "\nsecond line\n" + filler
	d := drafts(&observation.Event{Kind: observation.Tool, Calls: []observation.Call{{
		Tool: "Bash", Action: observation.Shell, Command: "make", Failed: true, Error: "Exit code 2\n" + output,
	}}}, testFilter(t))[0]
	said, _ := d.Meta["error"].(string)
	if !strings.HasPrefix(d.Content, "make\nerror: cannot log in with password=[REDACTED]\nsecond line\n") ||
		!strings.HasPrefix(said, "error: cannot log in with password=[REDACTED]\n") {
		t.Errorf("content %.120q, error %.120q", d.Content, said)
	}
	if strings.Contains(d.Content+said, "hunter2") || d.Meta["redacted"] != true {
		t.Errorf("not redacted: %.200q", d.Content)
	}
	if n := len([]rune(said)); n > errorHead+errorTail+3 || len([]rune(d.Content)) > len("make\n")+maxErrorText {
		t.Errorf("%d and %d characters", n, len([]rune(d.Content)))
	}
}

// A private section that begins far above the line must hide it.
func TestALineInsideAPrivateSectionIsNotShown(t *testing.T) {
	t.Parallel()
	output := "<private>\n" + strings.Repeat("filler line of text\n", 9000) + "error: the plan is to sell\n</private>\ndone with it\n"
	d := drafts(&observation.Event{Kind: observation.Tool, Calls: []observation.Call{{
		Tool: "Bash", Action: observation.Shell, Command: "make", Failed: true, Error: output,
	}}}, testFilter(t))[0]
	said, _ := d.Meta["error"].(string)
	if strings.Contains(d.Content+said, "sell") {
		t.Errorf("content %.200q, error %.200q", d.Content, said)
	}
}
