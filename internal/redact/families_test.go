package redact

import (
	"encoding/json"
	"strings"
	"testing"

	"cairn/internal/redact/looks"
)

// family is a kind of secret. It has texts with a secret in place of each §, and similar
// texts without a secret.
type family struct {
	name   string
	secret func(seed uint64) string
	leaks  []string
	stays  []string
}

// TestFamilies counts for each family how many secrets remain and how many texts without a
// secret change. Every text is tested unchanged and as a JSON string.
func TestFamilies(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	all := families()
	leaked, changed, secrets, texts := 0, 0, 0, 0
	for i, fam := range all {
		if len(fam.leaks) < 3 || len(fam.stays) < 3 {
			t.Errorf("%s: fewer than three texts of a kind", fam.name)
		}
		l, c := 0, 0
		for j, text := range fam.leaks {
			for k := range uint64(3) {
				secrets++
				if !goes(t, f, fam, text, fam.secret(uint64(100*i+10*j)+k)) {
					l++
				}
			}
		}
		for _, text := range fam.stays {
			texts++
			if !comesBack(t, f, fam, text) {
				c++
			}
		}
		t.Logf("%-28s %2d secrets, %d leaks; %2d other texts, %d false positives", fam.name, 3*len(fam.leaks), l, len(fam.stays), c)
		leaked, changed = leaked+l, changed+c
	}
	t.Logf("%d families: %d leaks of %d secrets, %d false positives in %d texts", len(all), leaked, secrets, changed, texts)
	if len(all) < 60 {
		t.Errorf("%d families", len(all))
	}
}

// goes reports whether exactly the secret in text is replaced.
func goes(t *testing.T, f *Filter, fam family, text, secret string) bool {
	t.Helper()
	whole, want := strings.ReplaceAll(text, "§", secret), strings.ReplaceAll(text, "§", Mark)
	if fam.name == "private section" {
		want = strings.ReplaceAll(text, "§", PrivateMark)
	}
	got, _ := f.Text(whole)
	if again, changed := f.Text(got); changed {
		t.Errorf("%s: %q\n becomes %q the second time", fam.name, got, again)
		return false
	}
	if got != want {
		t.Errorf("%s: %q\n became %q\n   want %q", fam.name, whole, got, want)
		return false
	}
	if fam.name == "kubernetes secret" { // lines of YAML, which a JSON string does not have
		return true
	}
	if got, _ := f.Text(escaped(whole)); strings.Contains(got, escaped(secret)) {
		t.Errorf("%s in JSON: %q\n became %q", fam.name, escaped(whole), got)
		return false
	}
	return true
}

// comesBack reports whether text is returned unchanged.
func comesBack(t *testing.T, f *Filter, fam family, text string) bool {
	t.Helper()
	for _, s := range []string{text, escaped(text)} {
		if got, changed := f.Text(s); changed || got != s {
			t.Errorf("%s: %q\n became %q", fam.name, s, got)
			return false
		}
	}
	return true
}

// escaped returns s as it appears inside a JSON string.
func escaped(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(b[1 : len(b)-1]))
}

// chosenPassword returns a typical user-chosen password: a word, a sign, a number.
func chosenPassword(seed uint64) string {
	word := letters(seed, smalls, 6)
	return strings.ToUpper(word[:1]) + word[1:] + letters(seed, digits, 3)
}

// plainPassword returns a password without capitals and signs.
func plainPassword(seed uint64) string {
	return letters(seed, smalls, 6) + letters(seed, "123456789", 2)
}

func alnumToken(n int) func(uint64) string {
	return func(seed uint64) string { return letters(seed, alnum, n-3) + "k7Q" }
}

func hexToken(n int) func(uint64) string {
	return func(seed uint64) string { return letters(seed, hexes, n-2) + "a1" }
}

func prefixed(prefix, alphabet string, n int) func(uint64) string {
	return func(seed uint64) string { return prefix + letters(seed, alphabet, n) }
}

func seedPhraseOf(n int) func(uint64) string {
	all := strings.Fields(looks.SeedWords)
	return func(seed uint64) string {
		words := make([]string, n)
		for i := range words {
			words[i] = all[(seed*131+uint64(i)*347+uint64(i*i)*29)%uint64(len(all))]
		}
		return strings.Join(words, " ")
	}
}

func pemBlock(seed uint64) string {
	block := keyBlock("RSA PRIVATE KEY", "\n")
	return strings.Replace(block, letters(0, base64, 64), letters(seed, base64, 64), 1)
}
