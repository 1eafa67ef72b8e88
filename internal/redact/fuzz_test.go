package redact

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func addSeeds(f *testing.F) {
	for _, h := range hostile() {
		f.Add(h.text+h.text, uint16(3), uint8(7))
	}
	for _, s := range []string{
		"password=hunter2", `{"token": "abcd1234"}`, "https://u:p@h/?sig=abcd", "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "<private>a</private>",
		"curl -u a:b 'x", "Cookie: a=b; c=\"d\"", "kind: Secret\ndata:\n  a: aHVudGVyMg==", "\xff\xfetoken: \xf0\x9f", Mark + PrivateMark, "[REDACTED", "Authorization: Bearer x.y.z", prose, code, logs,
	} {
		f.Add(s, uint16(len(s)/2), uint8(len(s)))
	}
}

// FuzzText checks that the filter handles any text. Redacted text stays unchanged and
// valid UTF-8 stays valid. A secret inserted anywhere between two blanks is removed.
func FuzzText(f *testing.F) {
	addSeeds(f)
	filters := []*Filter{mustFilter(f, Options{}), mustFilter(f, Options{Level: Strict, ExtraPatterns: []string{`[A-Z]{4,}`, `x*`}}), mustFilter(f, Options{Level: Relaxed, Allow: []string{"a", "secret"}})}
	secrets := knownShapes()
	f.Fuzz(func(t *testing.T, s string, at uint16, which uint8) {
		secret := secrets[int(which)%len(secrets)].secret
		for i, filter := range filters {
			once, changed := filter.Text(s)
			if !changed && once != s {
				t.Fatalf("changed silently: %q to %q", s, once)
			}
			if twice, again := filter.Text(once); again || twice != once {
				t.Fatalf("filter %d: %q, then %q, then %q", i, s, once, twice)
			}
			if utf8.ValidString(s) && !utf8.ValidString(once) {
				t.Fatalf("%q became invalid: %q", s, once)
			}
			cut := int(at) % (len(s) + 1)
			for cut < len(s) && !utf8.RuneStart(s[cut]) {
				cut++
			}
			planted, _ := filter.Text(s[:cut] + " " + secret + " " + s[cut:])
			if strings.Contains(planted, secret) {
				t.Fatalf("filter %d: %q stays in %q", i, secret, planted)
			}
		}
	})
}

// FuzzHead checks the same for texts that are cut at either end.
func FuzzHead(f *testing.F) {
	addSeeds(f)
	filter := mustFilter(f, Options{})
	secrets := knownShapes()
	f.Fuzz(func(t *testing.T, s string, at uint16, which uint8) {
		secret := secrets[int(which)%len(secrets)].secret
		cut := int(at) % (len(s) + 1)
		for cut < len(s) && !utf8.RuneStart(s[cut]) {
			cut++
		}
		text := s[:cut] + " " + secret + " " + s[cut:]
		limit := int(at)
		head, _ := filter.Head(text, limit)
		both, _ := filter.HeadTail(text, limit/3, int(which))
		if utf8.RuneCountInString(head) > limit || utf8.RuneCountInString(both) > limit/3+int(which)+utf8.RuneCountInString(Gap) {
			t.Fatalf("limit %d: %q, %q", limit, head, both)
		}
		if leaks(head, secret) && !leaks(s, secret) || leaks(both, secret) && !leaks(s, secret) {
			t.Fatalf("limit %d: a part of %q stays in %q or %q", limit, secret, head, both)
		}
		if utf8.ValidString(s) && !(utf8.ValidString(head) && utf8.ValidString(both)) {
			t.Fatalf("limit %d of %q: %q, %q", limit, s, head, both)
		}
	})
}

// FuzzValue checks that the filter handles any value, and that a second run changes
// nothing.
func FuzzValue(f *testing.F) {
	addSeeds(f)
	filter := mustFilter(f, Options{})
	f.Fuzz(func(t *testing.T, s string, at uint16, which uint8) {
		v := any(map[string]any{s: s, "token": s, "a": []any{s, map[string]any{"name": s, "value": s}, float64(at)}})
		once, _ := filter.Value(v)
		if twice, again := filter.Value(once); again {
			t.Fatalf("%v, then %v", once, twice)
		}
	})
}
