package tomlfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/regular"
)

func TestErrorsNameFileAndLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "config.toml")
	into := struct {
		Level int `toml:"level"`
	}{Level: 7}
	if err := Read(path, &into); err != nil || into.Level != 7 {
		t.Errorf("a missing file: %v, %+v", err, into)
	}
	for text, want := range map[string]string{
		"a = 1\nb = = 2\n":       "config.toml: line 2: ",
		"\n\nlevel = \"high\"\n": "config.toml: line 3: level cannot be of the type string",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Read(path, &into)
		f := fault.As(err)
		if f == nil || f.Kind != fault.Invalid || f.Code != Code || !strings.HasPrefix(f.Message, want) || !strings.Contains(f.Hint, path) {
			t.Errorf("%q: %+v", text, f)
		}
	}
	if err := Read(dir, &into); !fault.HasCode(err, Code) || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a folder: %v", err)
	}
	if err := os.WriteFile(path, []byte("level = 7\n#"+strings.Repeat("x", regular.MaxSettings)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Read(path, &into); !fault.HasCode(err, Code) || !strings.Contains(err.Error(), "the limit is 64 KiB") {
		t.Errorf("a large file: %v", err)
	}
}

func TestALineIsFoundByTheEndOfAKeysName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "config.toml")
	text := "[a.b]\nc = 1\nd.e = [\n1,\n2]\n\n[other]\nc = 2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"b.c": 2, "a.b.c": 2, "d.e": 3, "other.c": 8, "x.c": 0, "b": 0, "": 0} {
		if got := LineOf(path, key); got != want {
			t.Errorf("%q is in line %d, want %d", key, got, want)
		}
	}
	if got := LineOf(path+"s", "b.c"); got != 0 {
		t.Errorf("of no file: line %d", got)
	}
}

func TestTablesAreWhereTheyStand(t *testing.T) {
	t.Parallel()
	text := "top = 1\r\n[a.\"b c\"] # one\r\n  x = [ 1,\r\n 2 ] # two\r\ny.z = '''\r\n[no]\r\n'''\r\n# behind\r\n\r\n  [[list]]\r\n[end]"
	tables, err := Tables([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, tab := range tables {
		got = append(got, fmt.Sprintf("%s: %q", strings.Join(tab.Name, "|"), text[tab.Start:tab.End]))
		for _, k := range tab.Keys {
			got = append(got, fmt.Sprintf("%s = %q", strings.Join(k.Name, "|"), text[k.Start:k.End]))
		}
		if !strings.HasSuffix(text[:tab.HeaderEnd], "\n") && tab.HeaderEnd != len(text) {
			t.Errorf("the header of %v ends at %d", tab.Name, tab.HeaderEnd)
		}
	}
	want := []string{
		"a|b c: \"[a.\\\"b c\\\"] # one\\r\\n  x = [ 1,\\r\\n 2 ] # two\\r\\ny.z = '''\\r\\n[no]\\r\\n'''\\r\\n\"",
		`x = "x = [ 1,\r\n 2 ]"`,
		`y|z = "y.z = '''\r\n[no]\r\n'''"`,
		`list: "  [[list]]\r\n"`,
		`end: "[end]"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if _, err := Tables([]byte("[a]\nb = \n")); err == nil {
		t.Error("no error of what is no TOML")
	}
}

func FuzzTablesLieInTheTextAndInOrder(f *testing.F) {
	for _, s := range []string{"", "[a]\nb = 1\n", "[[a]]\r\nb.c = {d = 1}\r\n", "x = '''\n[y]'''\n[z]", "[a]", "a = [\n[1],\n]\n[b]\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tables, err := Tables(text)
		if err != nil {
			return
		}
		at := 0
		for _, tab := range tables {
			if tab.Start < at || tab.HeaderEnd <= tab.Start || tab.End < tab.HeaderEnd || tab.End > len(text) {
				t.Fatalf("%q: %+v after %d", text, tab, at)
			}
			if head := bytes.TrimLeft(text[tab.Start:], " \t"); head[0] != '[' {
				t.Errorf("%q: %+v does not begin with a header", text, tab)
			}
			for _, k := range tab.Keys {
				if k.Start < tab.HeaderEnd || k.End <= k.Start || k.End > tab.End {
					t.Errorf("%q: %+v", text, k)
				}
			}
			at = tab.End
		}
	})
}
