package failure

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// sample is the output of a failed command: the files of testdata hold the command,
// the expected line and what the tool printed.
type sample struct {
	name, command, want, output string
}

func samples(t testing.TB) (all []sample) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files of samples, %v", len(files), err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		command, rest, _ := strings.Cut(string(text), "\n")
		want, output, _ := strings.Cut(rest, "\n")
		all = append(all, sample{
			filepath.Base(f), strings.TrimPrefix(command, "$ "), strings.TrimPrefix(want, "= "), output,
		})
	}
	return all
}

func words(command string) []string {
	return strings.FieldsFunc(command, func(r rune) bool { return r == ' ' || r == '/' })
}

func TestFindsTheLineThatAPersonWouldPointAt(t *testing.T) {
	t.Parallel()
	for _, s := range samples(t) {
		got := Find(s.output, words(s.command))
		if got.Text != s.want {
			t.Errorf("%s: %s\n got: %s\nwant: %s", s.name, s.command, got.Text, s.want)
		}
		if line := strings.Fields(s.output[got.Start:got.End]); len(line) < 2 || !strings.Contains(s.want, line[1]) && !strings.Contains(s.want, line[2]) {
			t.Errorf("%s: the offsets select %q", s.name, line)
		}
		t.Logf("%-28s %s", s.command, got.Text)
	}
}

// A command may run a tool that it does not name: a script, a task runner.
func TestFindsTheLineBelowAnyWrapper(t *testing.T) {
	t.Parallel()
	missed := 0
	for _, s := range samples(t) {
		if got := Find(s.output, []string{"./run.sh"}); got.Text != s.want {
			missed++
			t.Logf("%s: got %s", s.name, got.Text)
		}
	}
	if missed > 2 {
		t.Errorf("%d samples have another line when the command does not name the tool", missed)
	}
}

func TestNeverShowsProgressBannersOrExitCodes(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		"":                                   "",
		"\n \t\n":                            "",
		"Exit code 1":                        "",
		"exit status 2\n----\n====":          "",
		"Exit code 1\nboom":                  "boom",
		"==== test session starts ====\nlow": "low",
		" 10%\r 50%\r100%\rdisk is full\n":   "disk is full",
		"Downloading a (1/2)\nDownloading b (2/2)\nchecksum differs": "checksum differs",
		"0 errors\nall 3 checks passed\nquota reached":               "quota reached",
		"a\nb\nc": "c",
	} {
		if got := Find(output, nil); got.Text != want {
			t.Errorf("%q: got %q, want %q", output, got.Text, want)
		}
	}
}

func TestFindsTheLineInTheMiddleOfALongOutput(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("  CC       drivers/net/ethernet/common.o\n", 9000)
	output := filler + "cart.c:3:5: error: unknown type name 'itm'\n" + filler[:len(filler)/2]
	if got := Find(output, []string{"make"}); got.Text != "cart.c:3:5: error: unknown type name 'itm'" {
		t.Errorf("got %q", got.Text)
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.output, s.command)
	}
	f.Add("● \nError:\n\xff: error: \r\n#1 1.0 ", "npm test")
	f.Fuzz(func(t *testing.T, output, command string) {
		got := Find(output, strings.Fields(command))
		if got.Start < 0 || got.End < got.Start || got.End > len(output) {
			t.Fatalf("%d to %d of %d", got.Start, got.End, len(output))
		}
		if len(got.Text) > maxLine || strings.ContainsAny(got.Text, "\n\r\t") {
			t.Fatalf("%q", got.Text)
		}
		if utf8.ValidString(output) && !utf8.ValidString(got.Text) {
			t.Fatalf("cut inside a character: %q", got.Text)
		}
		if again := Find(output, strings.Fields(command)); again != got {
			t.Fatalf("%v, then %v", got, again)
		}
	})
}

// The cost must be linear: compare the time per byte of the sizes. No line of the
// output matches a rule, so that every rule reads every line.
func BenchmarkFind(b *testing.B) {
	line := "  12:01:07 worker-3 handled a batch of 40 messages in 12 ms\n"
	for _, size := range []struct {
		name  string
		bytes int
	}{{"1KB", 1 << 10}, {"32KB", 32 << 10}, {"512KB", 512 << 10}, {"1MB", 1 << 20}} {
		output := strings.Repeat(line, size.bytes/len(line))
		b.Run(size.name, func(b *testing.B) {
			b.SetBytes(int64(len(output)))
			for b.Loop() {
				Find(output, []string{"make"})
			}
		})
	}
}
