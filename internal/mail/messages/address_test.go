package messages

import (
	"strings"
	"testing"
)

func FuzzAnAddressIsANameAndPerhapsAProject(f *testing.F) {
	for _, seed := range []string{"BlueDog", "BlueDog@app", "BlueDog@/w/@scope/app", "project:app#BlueDog", "project:#x", "project:a#", "@", "@x", "x@", "a@b@c", "project:a#b#C", " @ "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, key := splitAddress(text)
		if key == "" {
			if name != text {
				t.Errorf("%q is the name %q", text, name)
			}
			return
		}
		if strings.TrimSpace(name) == "" || name != strings.TrimSpace(name) || key != strings.TrimSpace(key) {
			t.Errorf("%q: name %q, key %q", text, name, key)
		}
		if !strings.Contains(text, name) || !strings.Contains(text, key) {
			t.Errorf("%q: name %q, key %q are not its parts", text, name, key)
		}
		for _, form := range []string{name + "@" + key, "project:" + key + "#" + name} {
			n, k := splitAddress(form)
			if !strings.HasPrefix(name, "project:") && !strings.ContainsAny(name, "@#") && (n != name || k != key) {
				t.Errorf("%q: name %q, key %q, want %q, %q", form, n, k, name, key)
			}
		}
	})
}
