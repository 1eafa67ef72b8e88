package wiring

import (
	"bytes"
	"cairn/internal/harness"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tailscale/hujson"
)

// seeds returns texts in layouts that people produce.
func seeds() []string {
	return []string{
		"", " \n", "{}", "{ }", "{\n}\n", `{"a":1}`, "{\"hooks\":{}}", "{\n  \"hooks\": {\n  }\n}", "{\"hooks\":{\"Stop\":[]}}",
		"\ufeff{\r\n\t\"a\": [1, 2], // note\r\n\t/* last */\r\n}\r\n",
		"{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}, // mine\n    ],\n  },\n}\n",
		"{ \"hooks\": { \"stop\": [ { \"command\": \"./x.sh\" } ] }, \"version\": 1 }",
		"{\"mcpServers\": {\"other\": {\"url\": \"http://localhost\"}} /* x */ }",
		"{\"a\" : 1 , }", "{\"a\":1 // c\n}", "{/* only */}", "{\"hooks\":{},\"hooks\":{\"Stop\":[ 1 ]}}",
		`{"mcpServers":{}, "version": 2}`,
	}
}

// Uninstall removes byte for byte what init adds to any parsable text. A second edit changes
// nothing, and all other content keeps its meaning.
func FuzzEditThenStripGivesTheTextBack(f *testing.F) {
	for _, s := range seeds() {
		for kind := range byte(8) {
			f.Add([]byte(s), kind)
		}
	}
	p := Paths{Home: "/home/jo doe", Program: "/home/jo doe/bin/cairn"}
	var kinds []settings
	for _, h := range Harnesses() {
		for _, s := range p.settingsOf(h, allParts()) {
			if s.format == harness.JSON {
				kinds = append(kinds, s)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, kind byte) {
		s := kinds[int(kind)%len(kinds)]
		if d, err := parseDocument(text); err != nil || len(contents{settings: s, doc: d}.calls()) > 0 {
			return
		}
		edited, err := s.edited(text)
		if err != nil {
			return // hooks or mcpServers of another shape are not changed
		}
		d, err := parseDocument(edited)
		if err != nil {
			t.Fatalf("%q became %q, which is no JSON: %v", text, edited, err)
		}
		if d.root.IsStandard() != isStandard(text) {
			t.Errorf("%q became %q: one has comments or trailing commas", text, edited)
		}
		for _, e := range (contents{settings: s, doc: d}).report() {
			if e.State != Present {
				t.Errorf("after the edit of %q: %+v", text, e)
			}
		}
		if again, err := s.edited(edited); err != nil || !bytes.Equal(again, edited) {
			t.Errorf("%q: a second edit makes %q of %q, %v", text, again, edited, err)
		}
		back, err := s.stripped(edited, text)
		if err != nil || !bytes.Equal(back, text) {
			t.Errorf("%q comes back as %q from %q, %v", text, back, edited, err)
		}
		alone, err := s.stripped(edited, nil)
		if err != nil {
			t.Errorf("%q: strip without the original: %v", edited, err)
		}
		if !s.nothingLeft(alone) && !reflect.DeepEqual(meaning(t, alone, true), meaning(t, text, true)) {
			t.Errorf("%q means something else as %q", text, alone)
		}
	})
}

func isStandard(text []byte) bool {
	d, err := parseDocument(text)
	return err == nil && d.root.IsStandard()
}

// Stripping removes all of cairn's entries in any layout. It leaves a parsable text, and strict
// JSON stays strict.
func FuzzStripLeavesNothingOfOurs(f *testing.F) {
	for _, s := range []string{
		`{"hooks":{"Stop":[{"hooks":[{"command":"cairn record"},{"command":"x"}]},{"hooks":[{"command":"/a/cairn record"}]}]}}`,
		"{\"hooks\":{\"stop\":[{\"command\":\"cairn record\"} , // c\n {\"command\":\"x\"} ]}}",
		"{\"hooks\": { \"Stop\" : [ {\"hooks\": [ /* a */ {\"command\":\"cairn\",\"args\":[\"record\"]} /* b */ , ] } , ] } , }",
		"{\"mcpServers\":{\"cairn\":{\"command\":\"cairn\",\"args\":[\"serve\"]} , \"x\" : {}}}",
		"{\"mcpServers\":{\"x\" : {} , \"cairn\":{\"command\":\"cairn\",\"args\":[\"serve\"]}}}",
	} {
		f.Add([]byte(s))
	}
	gemini, cursor := fileOf(jo, Gemini, "settings.json"), fileOf(jo, Cursor, "hooks.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, s := range []settings{gemini, cursor} {
			if _, err := parseDocument(text); err != nil {
				return
			}
			out, err := s.stripped(text, nil)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			d, err := parseDocument(out)
			if err != nil {
				t.Fatalf("%q became %q: %v", text, out, err)
			}
			if calls := (contents{settings: s, doc: d}).calls(); len(calls) > 0 {
				t.Errorf("%q became %q, which still has %v", text, out, calls)
			}
			if isStandard(text) && !d.root.IsStandard() {
				t.Errorf("%q became %q, which is no strict JSON", text, out)
			}
			if again, err := s.stripped(out, nil); err != nil || !bytes.Equal(again, out) {
				t.Errorf("%q becomes %q and then %q, %v", text, out, again, err)
			}
		}
	})
}

// meaning returns the content of a text. If loosely is set, it omits content that uninstall
// cannot restore.
func meaning(t *testing.T, text []byte, loosely bool) map[string]any {
	t.Helper()
	out := map[string]any{}
	text = bytes.TrimPrefix(text, []byte(bom))
	if len(bytes.TrimSpace(text)) == 0 {
		return out
	}
	plain, err := hujson.Standardize(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(plain, &object) != nil {
		return out
	}
	for k, raw := range object {
		var v any
		if json.Unmarshal(raw, &v) != nil {
			v = string(raw)
		}
		out[k] = v
	}
	if !loosely {
		return out
	}
	delete(out, "version")
	for _, k := range []string{"hooks", "mcpServers"} {
		m, ok := out[k].(map[string]any)
		for name, list := range m {
			if l, is := list.([]any); is && len(l) == 0 {
				delete(m, name)
			}
		}
		if ok && len(m) == 0 {
			delete(out, k)
		}
	}
	return out
}

func FuzzTOMLEditThenStripGivesTheTextBack(f *testing.F) {
	for _, s := range []string{
		"", "\n", "model = \"o3\"", "model = \"o3\"\n", "model = \"o3\"\r\n\r\n[mcp_servers.docs]\r\ncommand = \"docs\"\r\n",
		"[mcp_servers]\n", "mcp_servers = {}\n", "# only a comment", "[[x]]\ny = '''\n[mcp_servers.cairn]\n'''\n\n\n", "\ufeffa = 1\n",
		"[mcp_servers.\"docs\"] # d\nargs = [\n  \"a\", # b\n]\n# end\n",
	} {
		f.Add([]byte(s))
	}
	p := Paths{Home: `C:\Users\jo`, Program: `C:\Users\jo doe\cairn.exe`}
	s := p.settingsOf(Codex, allParts())[1]
	f.Fuzz(func(t *testing.T, text []byte) {
		edited, err := s.edited(text)
		if err != nil || bytes.Equal(edited, text) {
			return
		}
		if again, err := s.edited(edited); err != nil || !bytes.Equal(again, edited) {
			t.Errorf("%q: a second edit makes %q of %q, %v", text, again, edited, err)
		}
		back, err := s.stripped(edited, text)
		if err != nil || !bytes.Equal(back, text) {
			t.Errorf("%q comes back as %q from %q, %v", text, back, edited, err)
		}
		if _, err := s.stripped(edited, nil); err != nil {
			t.Errorf("%q: strip without the original: %v", edited, err)
		}
	})
}
