package wiring

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestCommandLinesAreQuotedForTheShellThatReadsThem(t *testing.T) {
	t.Parallel()
	args := []string{"record", "--from", "claude"}
	for _, c := range []struct {
		shell         shell
		program, want string
	}{
		{posix, "/usr/local/bin/cairn", "/usr/local/bin/cairn"},
		{posix, "/Users/Jörg/bin/cairn", "/Users/Jörg/bin/cairn"},
		{posix, "/Users/jo doe/cairn", "'/Users/jo doe/cairn'"},
		{posix, "/home/o'neil/$x/cairn", `'/home/o'\''neil/$x/cairn'`},
		{posix, `/home/a\b/cairn`, `'/home/a\b/cairn'`},
		{gitBash, `C:\Users\jo\cairn.exe`, "C:/Users/jo/cairn.exe"},
		{gitBash, `C:\Program Files\$x\cairn.exe`, `"C:/Program Files/\$x/cairn.exe"`},
		{powershell, `C:\Users\jo\cairn.exe`, `C:\Users\jo\cairn.exe`},
		{powershell, `C:\Users\o'neil x\cairn.exe`, `& 'C:\Users\o''neil x\cairn.exe'`},
		{cmd, `C:\Users\jo\cairn.exe`, `C:\Users\jo\cairn.exe`},
		{cmd, `C:\Program Files (x86)\cairn.exe`, `"C:\Program Files (x86)\cairn.exe"`},
	} {
		line := c.shell.line(c.program, args)
		if want := c.want + " record --from claude"; line != want {
			t.Errorf("%s: %s, want %s", c.program, line, want)
		}
		words := splitLine(line, c.shell != posix)
		want := append([]string{c.program}, args...)
		if c.shell == gitBash {
			want[0] = strings.ReplaceAll(c.program, `\`, "/")
		}
		if !slices.Equal(words, want) {
			t.Errorf("%s is read as %q", line, words)
		}
	}
}

func TestTheShellRunsTheProgramWhateverItsPathHolds(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("sh is not part of Windows")
	}
	for _, name := range []string{"plain", "with space", `quo'te "and" more`, `back\slash`, "dollar$HOME`id`", "a;b&c|d", "-dash", "*"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, "cairn")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$# $1 $2 $3\"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		line := posix.line(program, []string{"record", "--from", "gemini"})
		out, err := exec.Command("sh", "-c", line).CombinedOutput()
		if err != nil || string(out) != "3 record --from gemini\n" {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
}

func TestHandwrittenCallsAreKnownAsOurs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"command": "cairn record"}`:                                        true,
		`{"command": "\"C:\\Program Files\\cairn.exe\" record --from auto"}`: true,
		`{"command": "/x/CAIRN.EXE", "args": ["record"]}`:                    true,
		`{"command": "/x/cairn-next record --from codex"}`:                   true, // recognised by its options
		`{"command": "& 'C:\\x y\\cairn.exe' record"}`:                       true,
		`{"command": "cairn context"}`:                                       false,
		`{"command": "other record --from here"}`:                            false,
		`{"command": "echo cairn record"}`:                                   false,
		`{"command": "cairn", "args": ["record", 1]}`:                        false,
		`{"command": 1}`: false,
		`{"type": "prompt", "prompt": "cairn record"}`: false,
		`{"command": "  "}`:                            false,
	} {
		d, err := parseDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, ours := ourCall(d.object(), true); ours != want {
			t.Errorf("%s: %v", text, ours)
		}
	}
}

func FuzzSplitLineNeverFailsAndReadsWhatLineWrites(f *testing.F) {
	for _, s := range []string{"/usr/bin/cairn", `C:\a b\cairn.exe`, `it's "x"`, `\\server\share\cairn.exe`, "a\\", "'", `"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		splitLine(path, false)
		splitLine(path, true)
		if path == "" || strings.ContainsAny(path, "\x00\n") || !slices.Equal([]rune(path), []rune(strings.ToValidUTF8(path, ""))) {
			return
		}
		if words := splitLine(posix.line(path, []string{"record"}), false); len(words) != 2 || words[0] != path {
			t.Errorf("%q is read as %q", path, words)
		}
	})
}
