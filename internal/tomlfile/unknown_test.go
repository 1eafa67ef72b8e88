package tomlfile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
)

// sample is the target type of the settings in these tests.
type sample struct {
	Part struct {
		Filter struct {
			Level string   `toml:"level"`
			Allow []string `toml:"allow"`
		} `toml:"filter"`
		Capture struct {
			Off bool `toml:"off"`
		} `toml:"capture"`
		Assist struct {
			Off bool `toml:"off"`
		} `toml:"assist"`
		Days   map[string]any `toml:"days"`
		hidden int
	} `toml:"part"`
	KeyFile string `toml:"key_file"`
}

func unknownIn(t testing.TB, text string) ([]UnknownKey, error) {
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Unknown(path, &sample{})
}

func TestUnknownKeysAreNamedWithTheNearestKnownOne(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":             nil,
		"key_file='k'": nil,
		"[part.filter]\nlevel = 'x'\nallow = []\n[part.days]\nanything = 3\n": nil,

		"keyfile = 'k'\n":                                {"1 keyfile key_file"},
		"[part.filter]\nlevel = 'x'\nlevl = 'y'\n":       {"3 part.filter.levl part.filter.level"},
		"[part]\nfilter.alow = 1\n":                      {"2 part.filter.alow part.filter.allow"},
		"part = {filtr = {level = 'x'}}\n":               {"1 filtr part.filter"},
		"[filter]\nlevel = 'x'\nallow = []\n":            {"1 filter part.filter"},
		"[parts.filter]\nlevel = 'x'\n":                  {"1 parts.filter part.filter"},
		"\n[part]\nlevel = 'x'\n[part.capture]\noff=0>1": {"invalid"},
		"[part]\nlevel = 'x'\nhidden = 1\n":              {"2 part.level part.filter.level", "3 part.hidden "},
		"[part]\noff = true\n":                           {"2 part.off "}, // either of capture or of assist
		"[mail]\nserver = 'x'\n":                         {"1 mail "},
		"[[part.filtr]]\n":                               {"1 part.filtr part.filter"},
		"\"\" = 1\n":                                     {"1  "},
	} {
		unknown, err := unknownIn(t, text)
		var got []string
		for _, u := range unknown {
			got = append(got, fmt.Sprintf("%d %s %s", u.Line, u.Name, u.Like))
		}
		if fault.HasCode(err, Code) {
			got = []string{"invalid"}
		} else if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got, err := Unknown(filepath.Join(t.TempDir(), "none.toml"), &sample{}); got != nil || err != nil {
		t.Errorf("a missing file: %v, %v", got, err)
	}
	if _, err := Unknown(t.TempDir(), &sample{}); !fault.HasCode(err, Code) {
		t.Errorf("a folder: %v", err)
	}
}

// FuzzUnknown looks for texts that Read and Unknown treat differently. It also looks for
// impossible names, lines and suggestions.
func FuzzUnknown(f *testing.F) {
	f.Add("[part.filter]\nlevel = 'x'\nlevl = 'y'\n")
	f.Add("part = {filtr = {level = 'x'}}\n\"\".a = 1\n[[x.\"b.c\"]]\n")
	f.Fuzz(func(t *testing.T, text string) {
		readErr := Decode("config.toml", []byte(text), &sample{})
		unknown, err := unknownIn(t, text)
		if (err == nil) != (readErr == nil) {
			t.Fatalf("reading says %v, looking for unknown keys %v", readErr, err)
		}
		for _, u := range unknown {
			if u.Line < 1 || u.Line > 1+strings.Count(text, "\n") {
				t.Errorf("%q is in line %d", u.Name, u.Line)
			}
			if u.Like != "" && !slices.Contains(knownOf(), u.Like) {
				t.Errorf("%q is like %q, which nobody knows", u.Name, u.Like)
			}
		}
	})
}

func knownOf() []string {
	return []string{
		"part", "part.filter", "part.filter.level", "part.filter.allow", "part.capture", "part.capture.off",
		"part.assist", "part.assist.off", "part.days", "key_file",
	}
}
