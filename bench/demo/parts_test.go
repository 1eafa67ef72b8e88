package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSearchFilesFindsPartsOfTheKey(t *testing.T) {
	t.Parallel()
	key := "sk_" + "live_" + "QRSTUVWXYZ234567ABCDEFGHIJ"
	for name, c := range map[string]struct {
		holds string
		leak  bool
	}{
		"all of it":            {"before " + key + " after", true},
		"its last characters":  {"…CDEFGHIJ", true},
		"in lower case":        {"index qrstuvwx", true},
		"fewer than eight":     {"BCDEFG", false},
		"only the key's shape": {"sk_" + "live_[REDACTED]", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "deep"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "deep", "cairn.db"), []byte(c.holds), 0o600); err != nil {
				t.Fatal(err)
			}
			names, size, err := searchFiles(dir, key)
			if (err != nil) != c.leak {
				t.Errorf("leak %v, error %v", c.leak, err)
			}
			if err == nil && (len(names) != 1 || size != len(c.holds)) {
				t.Errorf("read %v, %d bytes", names, size)
			}
		})
	}
}

func TestSearchFilesWantsSomethingToSearch(t *testing.T) {
	t.Parallel()
	if _, _, err := searchFiles(t.TempDir(), inventedKey()); err == nil {
		t.Error("an empty folder proves nothing")
	}
}

func TestFilesWithATextAreFoundInEitherCase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a": "An Idempotent\x00Request", "sub/b": "idempotent requests", "c": ""} {
		if err := put(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{"IDEMPOTENT": "[a b]", "idempotent requests": "[b]", "nothing": "[]"} {
		if got, err := filesWith(dir, text); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q is in %v, want %s (%v)", text, got, want, err)
		}
	}
	if _, err := filesWith(filepath.Join(dir, "gone"), "x"); err == nil {
		t.Error("no folder proves nothing")
	}
}

func TestShellWordQuotesOnlyWhereNeeded(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/usr/bin/cairn":  "/usr/bin/cairn",
		"/a b/cairn":      `"/a b/cairn"`,
		"/a$b/cairn":      `"/a\$b/cairn"`,
		"/it's/(x)/cairn": `"/it's/(x)/cairn"`,
	} {
		if got := shellWord(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestWrapKeepsEveryWordWithinTheWidth(t *testing.T) {
	t.Parallel()
	text := "one two three\n\nfour " + strings.Repeat("x", 25) + " fünf\x1b[31m"
	lines := wrap(text, 10)
	for _, l := range lines {
		if len([]rune(l)) > 10 || strings.ContainsRune(l, 0x1b) {
			t.Errorf("line %q", l)
		}
	}
	want := "one two|three||four|xxxxxxxxxx|xxxxxxxxxx|xxxxx|fünf[31m"
	if got := strings.Join(lines, "|"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestOneLineCutsByCharacters(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\tb\nc": "a b c", "äöüäöü": "äöüä…", "\x1b]0;x\a": "]0;x", "": "",
	} {
		if got := oneLine(text, 5); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestOnlyATerminalGetsColour(t *testing.T) {
	t.Parallel()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{f, io.Discard} {
		if newScreen(w, func(string) string { return "" }).color {
			t.Errorf("colour for a %T", w)
		}
	}
}

func TestWrongUseIsOneClearError(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	plain := filepath.Join(folder, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"missing":  {[]string{"--cairn", filepath.Join(folder, "none")}, "run `make build` first"},
		"a folder": {[]string{"--cairn", folder}, "is not a program"},
		"plain":    {[]string{"--cairn", plain}, "is not a program"},
		"flag":     {[]string{"--mien"}, "--mine"},
		"argument": {[]string{"mine"}, `unexpected argument "mine"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := run(t.Context(), c.args, &out, func(string) string { return "" })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if out.Len() > 0 {
				t.Errorf("printed %q", out.String())
			}
		})
	}
}

// brokenPipe is a writer whose reader has closed the pipe.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errGone }

var errGone = errors.New("gone")

func TestScreenKeepsTheFirstError(t *testing.T) {
	t.Parallel()
	s := newScreen(brokenPipe{}, func(string) string { return "" })
	s.say("%s", strings.Repeat("word ", 5000))
	s.line("more")
	if err := s.flush(); !errors.Is(err, errGone) {
		t.Errorf("error %v", err)
	}
}
