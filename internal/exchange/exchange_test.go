package exchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
)

type thing struct {
	Kind string `json:"kind,omitempty"`
	Text string `json:"text"`
	N    int    `json:"n,omitempty"`
}

// written returns an export of things.
func written(t testing.TB, things ...thing) []byte {
	t.Helper()
	var b bytes.Buffer
	h := Header{Cairn: "test", At: time.Unix(1_770_000_000, 0).UTC(), Projects: []string{"shop"}, Counts: map[string]int{"thing": len(things)}}
	w, err := NewWriter(&b, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range things {
		if err := w.Put("thing", v); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// sealed appends a matching trailer to lines.
func sealed(lines ...string) []byte {
	text := strings.Join(lines, "\n") + "\n"
	sum := sha256.Sum256([]byte(text))
	return fmt.Appendf([]byte(text), `{"kind":"end","lines":%d,"sha256":"%s"}`+"\n", len(lines), hex.EncodeToString(sum[:]))
}

// read reads a whole export.
func read(text []byte) (things []thing, sum string, err error) {
	r, err := NewReader(bytes.NewReader(text))
	for err == nil {
		var l Line
		var v thing
		if l, err = r.Next(); err == nil {
			err = l.Decode(&v)
			things = append(things, v)
		}
	}
	if err == io.EOF {
		return things, r.SHA256(), nil
	}
	return things, "", err
}

func TestAWrittenExportIsReadBack(t *testing.T) {
	t.Parallel()
	want := []thing{{Text: "<b>&amp;</b> \u2028 日本 \x01"}, {Text: strings.Repeat("long ", 1<<18), N: 3}, {}}
	text := written(t, want...)
	got, sum, err := read(text)
	if err != nil || len(got) != 3 || len(sum) != 64 {
		t.Fatalf("%d things, sum %q, %v", len(got), sum, err)
	}
	for i, v := range got {
		if v.Kind != "thing" || v.Text != want[i].Text || v.N != want[i].N {
			t.Errorf("%d: %.80v", i, v)
		}
	}
	if !bytes.Contains(text, []byte("<b>&amp;</b>")) {
		t.Error("people cannot read it")
	}
	if !IsExport(bytes.NewReader(text)) || IsExport(strings.NewReader(`{"type":"user"}`)) || IsExport(strings.NewReader("")) {
		t.Error("an export is not told from other files")
	}
}

func TestAnExportTruncatedAtAnyByteIsRejected(t *testing.T) {
	t.Parallel()
	text := written(t, thing{Text: "a"}, thing{Text: "b"})
	for n := range len(text) {
		if _, _, err := read(text[:n]); !fault.HasCode(err, CodeDamaged) {
			t.Fatalf("cut at byte %d of %d: %v", n, len(text), err)
		}
	}
}

func TestAnExportAlteredAtAnyByteIsRejected(t *testing.T) {
	t.Parallel()
	text := written(t, thing{Text: "a"}, thing{Text: "b"})
	for n := range len(text) {
		for _, flip := range []byte{1, 0x20, 0x80} {
			other := bytes.Clone(text)
			other[n] ^= flip
			if _, _, err := read(other); err == nil {
				t.Fatalf("byte %d of %d altered by %x: not noticed", n, len(text), flip)
			}
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for name, other := range map[string][]byte{
		"a line less":      bytes.Join([][]byte{lines[0], lines[1], lines[3]}, nil),
		"a line twice":     bytes.Join([][]byte{lines[0], lines[1], lines[1], lines[2], lines[3]}, nil),
		"lines exchanged":  bytes.Join([][]byte{lines[0], lines[2], lines[1], lines[3]}, nil),
		"something behind": append(bytes.Clone(text), '\n'),
		"twice":            append(bytes.Clone(text), text...),
	} {
		if _, _, err := read(other); !fault.HasCode(err, CodeDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The trailer of version 1 has the checksum of all lines, including the header.
func TestAnExportOfVersion1IsRead(t *testing.T) {
	t.Parallel()
	text := sealed(`{"cairn_export":1,"cairn":"x","at":"2026-01-01T00:00:00Z","all":true,"projects":[],"counts":{"thing":1}}`, `{"kind":"thing","text":"a"}`)
	if things, _, err := read(text); err != nil || len(things) != 1 {
		t.Errorf("%v, %v", things, err)
	}
	other := bytes.Replace(text, []byte("2026"), []byte("2027"), 1)
	if _, _, err := read(other); !fault.HasCode(err, CodeDamaged) {
		t.Errorf("an altered header: %v", err)
	}
}

// The header's own checksum shows that the header was altered.
func TestExportsOfEqualThingsDifferOnlyInTheHeader(t *testing.T) {
	t.Parallel()
	export := func(at time.Time) (header, rest []byte) {
		var b bytes.Buffer
		w, err := NewWriter(&b, Header{Cairn: "x", At: at, Projects: []string{}, Counts: map[string]int{"thing": 1}})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Put("thing", thing{Text: "a"}), w.Close()); err != nil {
			t.Fatal(err)
		}
		header, rest, _ = bytes.Cut(b.Bytes(), []byte("\n"))
		return header, rest
	}
	header, rest := export(time.Unix(1, 0).UTC())
	later, same := export(time.Unix(2, 0).UTC())
	if !bytes.Equal(rest, same) || bytes.Equal(header, later) {
		t.Errorf("the exports are\n%s\n%s\nand\n%s\n%s", header, rest, later, same)
	}
	altered := append(bytes.Replace(header, []byte(":01Z"), []byte(":03Z"), 1), '\n')
	if _, _, err := read(append(altered, rest...)); !fault.HasCode(err, CodeDamaged) || !strings.Contains(err.Error(), "the header was altered") {
		t.Errorf("an altered header: %v", err)
	}
}

func TestHostileLinesAreRefusedByNumber(t *testing.T) {
	t.Parallel()
	const head = `{"cairn_export":1,"cairn":"x","at":"2026-01-01T00:00:00Z","all":true,"projects":[],"counts":{}}`
	for name, c := range map[string]struct {
		text []byte
		code string
		says string
	}{
		"nothing":          {nil, CodeDamaged, "line 1:"},
		"a newer format":   {sealed(`{"cairn_export":3,"what":{}}`), CodeNewer, "line 1: the export has version 3, this cairn reads 2"},
		"a huge version":   {sealed(`{"cairn_export":99999999999999999999}`), CodeNewer, "line 1:"},
		"version 0":        {sealed(strings.Replace(head, ":1,", ":0,", 1)), CodeDamaged, "line 1:"},
		"version of text":  {sealed(`{"cairn_export":"one"}`), CodeDamaged, "line 1:"},
		"no header":        {sealed(`{"kind":"thing"}`), CodeDamaged, "line 1:"},
		"header's field":   {sealed(`{"cairn_export":1,"compressed":true}`), CodeNewer, `line 1: this cairn does not know its field "compressed"`},
		"unknown field":    {sealed(head, `{"kind":"thing","text":"a","colour":"red"}`), CodeNewer, `line 2: this cairn does not know its field "colour"`},
		"no JSON":          {sealed(head, `kind=thing`), CodeDamaged, "line 2: it is not valid JSON at byte 1"},
		"an array":         {sealed(head, `["thing"]`), CodeDamaged, "line 2:"},
		"null":             {sealed(head, `null`), CodeDamaged, "line 2: it has no kind"},
		"an empty line":    {sealed(head, ``), CodeDamaged, "line 2:"},
		"a kind of number": {sealed(head, `{"kind":7}`), CodeDamaged, "line 2:"},
		"a wrong type":     {sealed(head, `{"kind":"thing","text":{}}`), CodeDamaged, "line 2: its field text holds a JSON object"},
		"two values":       {sealed(head, `{"kind":"thing","text":"a"} {}`), CodeDamaged, "line 2:"},
		"no UTF-8":         {sealed(head, "{\"kind\":\"thing\",\"text\":\"\xff\"}"), CodeDamaged, "line 2: it is not UTF-8"},
		"deep JSON":        {sealed(head, `{"kind":"thing","text":`+strings.Repeat("[", 1<<20)), CodeDamaged, "line 2:"},
		"a huge line":      {sealed(head, `{"kind":"thing","text":"`+strings.Repeat("x", MaxLine)+`"}`), CodeDamaged, "line 2: it is longer than 16 MiB"},
		"a huge number":    {sealed(head, `{"kind":"thing","text":"a","n":1e400}`), CodeDamaged, "line 2:"},
		"wrong counts":     {sealed(strings.Replace(head, `"counts":{}`, `"counts":{"thing":2}`, 1), `{"kind":"thing","text":"a"}`), CodeDamaged, "line 3: the header announces 2"},
	} {
		_, _, err := read(c.text)
		if !fault.HasCode(err, c.code) || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
		if f := fault.As(err); f != nil && (f.Hint == "" || len(f.Message) > 200) {
			t.Errorf("%s: %q (%q)", name, f.Message, f.Hint)
		}
	}
}

func TestALineThatAnnouncesMoreThanItHoldsFails(t *testing.T) {
	t.Parallel()
	w, err := NewWriter(io.Discard, Header{Counts: map[string]int{"thing": 2}})
	if err == nil {
		err = w.Put("thing", thing{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err == nil {
		t.Error("a line is missing and nobody says so")
	}
	if err := w.Put("thing", thing{Text: strings.Repeat("x", MaxLine)}); err == nil {
		t.Error("a line is written that cannot be read")
	}
}

func TestAFileIsWrittenAtomically(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	for _, step := range []struct {
		text   string
		commit bool
		want   string
	}{{"dropped", false, ""}, {"first", true, "first"}, {"dropped", false, "first"}, {"second", true, "second"}} {
		f, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(step.text); err != nil {
			t.Fatal(err)
		}
		end := f.Discard
		if step.commit {
			end = f.Commit
		}
		err = end()
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if string(got) != step.want || (err != nil) != (step.want == "") {
			t.Errorf("%q: %q %v", step.text, got, err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none", "x")} {
		if _, err := Create(bad); fault.As(err) == nil || fault.As(err).Hint == "" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add(written(f, thing{Text: "a"}, thing{Text: "b", N: 1}))
	f.Add(sealed(`{"cairn_export":1,"counts":{"thing":1}}`, `{"kind":"thing","text":"\ud800"}`))
	f.Add([]byte(`{"cairn_export":1}` + "\n" + `{"kind":"end"}` + "\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		things, sum, err := read(text)
		if err != nil {
			if !fault.HasCode(err, CodeDamaged) && !fault.HasCode(err, CodeNewer) {
				t.Fatalf("%v", err)
			}
			return
		}
		// The trailer's checksum matches the accepted lines.
		start, end := 0, bytes.LastIndexByte(text[:len(text)-1], '\n')+1
		var h Header
		if err := json.Unmarshal(text[:bytes.IndexByte(text, '\n')], &h); err != nil {
			t.Fatal(err)
		}
		if h.Version >= sumWithoutHeader {
			start = bytes.IndexByte(text, '\n') + 1
		}
		got := sha256.Sum256(text[start:end])
		if sum != hex.EncodeToString(got[:]) || bytes.Count(text, []byte("\n")) != len(things)+2 {
			t.Fatalf("accepted, though its sum is %x with %d things", got, len(things))
		}
	})
}
