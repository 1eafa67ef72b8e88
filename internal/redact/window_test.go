package redact

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// straddlers are secrets in their surrounding text, with the parts that may remain and the
// parts that must not.
func straddlers() []struct{ text, secret string } {
	var all []struct{ text, secret string }
	add := func(text, secret string) { all = append(all, struct{ text, secret string }{text, secret}) }
	for _, k := range knownShapes() {
		add(k.secret, k.secret)
	}
	pw := "zq7XvK2wpL9x"
	for _, c := range []string{"password=%", `"password": "%"`, "--password %", "https://user:%@host.example.com/", "Authorization: Bearer %", "Cookie: sid=%; a=bcdef", "curl -u bob:% h", "mysql -p% db",
		"https://h/x?sig=%&a=b", "https://hooks.slack.com/services/T0/B0/%", "<private>%</private>", "<private>%"} {
		add(strings.Replace(c, "%", pw, 1), pw)
	}
	add(letters(20, alnum, 48), letters(20, alnum, 48))
	for _, kind := range []string{"RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
		for _, eol := range []string{"\n", `\n`} {
			block := keyBlock(kind, eol)
			add(block, block)
			add(block[:len(block)-30], block[:len(block)-30])
		}
	}
	return all
}

func TestRedactThenTruncateLeavesNoHalfSecret(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, s := range straddlers() {
		before, after := "Before it there is text é ", " and after it there is more."
		text := before + s.text + after
		for limit := range utf8.RuneCountInString(text) + 3 {
			got, _ := f.Head(text, limit)
			if leaks(got, s.secret) || utf8.RuneCountInString(got) > limit {
				t.Errorf("limit %d of %.80q: %q", limit, text, got)
			}
			if n := utf8.RuneCountInString(before); limit <= n && got != firstRunes(text, limit) {
				t.Errorf("limit %d before the secret: %q", limit, got)
			}
		}
	}
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	return string(r[:min(n, len(r))])
}

func lastRunes(s string, n int) string {
	r := []rune(s)
	return string(r[max(0, len(r)-n):])
}

func TestHeadAndTailLeaveNoHalfSecret(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, s := range straddlers() {
		text := strings.Repeat("ä text ", 8) + s.text + strings.Repeat(" text ü", 8)
		for head := 0; head < 60; head += 7 {
			for tail := range 130 {
				got, _ := f.HeadTail(text, head, tail)
				if leaks(got, s.secret) || utf8.RuneCountInString(got) > head+tail+utf8.RuneCountInString(Gap) {
					t.Fatalf("head %d, tail %d of %.80q: %q", head, tail, text, got)
				}
			}
		}
	}
}

func TestHeadAndTailKeepsBothEnds(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	text := "ä" + strings.Repeat("first words ", 50) + strings.Repeat("last words ", 50) + "ü"
	got, changed := f.HeadTail(text, 20, 10)
	if want := firstRunes(text, 20) + Gap + lastRunes(text, 10); got != want || changed {
		t.Errorf("got %q, want %q", got, want)
	}
	n := utf8.RuneCountInString(text)
	if got, _ := f.HeadTail(text, n-10, 10); got != text {
		t.Error("a text that fits was cut")
	}
	if got, _ := f.HeadTail(text, -5, -1); got != Gap {
		t.Errorf("negative lengths give %q", got)
	}
	if got, changed := f.HeadTail("password="+strings.Repeat("x1", 50)+" end", 20, 10); got != "password="+Mark+" end" || !changed {
		t.Errorf("what fits after redaction was cut: %q", got)
	}
}

func TestHeadFillsUpToTheLimitAfterRedaction(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	got, changed := f.Head(keyBlock("RSA PRIVATE KEY", "\n")+" "+strings.Repeat("word ", 100), 40)
	if want := Mark + " " + strings.Repeat("word ", 100)[:29]; got != want || !changed {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, limit := range []int{100, math.MaxInt} {
		if got, _ := f.Head("short", limit); got != "short" {
			t.Errorf("limit %d: %q", limit, got)
		}
		if got, _ := f.HeadTail("short", limit, limit); got != "short" {
			t.Errorf("limits %d: %q", limit, got)
		}
	}
	for _, limit := range []int{0, -1} {
		if got, _ := f.Head("text", limit); got != "" {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	if got, _ := f.Head("\xff\xfe\xfdabc", 4); got != "\xff\xfe\xfda" {
		t.Errorf("got %q", got)
	}
}

// TestSecretsAtTheEdgeOfTheReadText puts secrets where the part of a long text that is
// read begins or ends. They follow blocks so large that little else remains.
func TestSecretsAtTheEdgeOfTheReadText(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	secret := fakeGitHub()
	block := "<private>" + strings.Repeat("x", beyond-100) + "</private> "
	for shift := range 60 {
		text := block + strings.Repeat("w", 20+shift) + " " + secret + strings.Repeat(" word", 20_000)
		if got, _ := f.Head(text, 100); leaks(got, secret) {
			t.Fatalf("head, shift %d: %q", shift, got)
		}
		text = strings.Repeat("word ", 40_000) + secret + " " + strings.Repeat("w", 20+shift) + " " + block
		if got, _ := f.HeadTail(text, 50, 100); leaks(got, secret) {
			t.Fatalf("tail, shift %d: %q", shift, got)
		}
	}
}

func TestBlocksThatBeginFarBeforeTheTail(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	filler := strings.Repeat("0123456789abcde\n", 20_000) // 320,000 characters
	inside := "INSIDE-THE-BLOCK "
	for name, c := range map[string]struct{ text, want string }{
		"key, never closed":     {"start " + filler + "-----BEGIN RSA PRIVATE KEY-----\n" + filler + inside, Mark},
		"key, closed in tail":   {"start " + filler + "-----BEGIN EC PRIVATE KEY-----\n" + filler + inside + "-----END EC PRIVATE KEY-----\nfine", Mark + "\nfine"},
		"key, closed before":    {"start " + filler + "-----BEGIN EC PRIVATE KEY-----\nx\n-----END EC PRIVATE KEY-----\n" + filler + "fine", "789abcde\nfine"},
		"private, never closed": {"start " + filler + "<private>" + filler + inside, PrivateMark},
		"private, closed":       {"start " + filler + "<PRIVATE>" + filler + inside + "</private> fine", PrivateMark + " fine"},
		"private, nested":       {"start " + filler + "<private><private></private>" + filler + inside + "</private> fine", PrivateMark + " fine"},
		"public block":          {"start " + filler + "-----BEGIN CERTIFICATE-----\n" + filler + "fine", "789abcde\nfine"},
	} {
		got, _ := f.HeadTail(c.text, 10, 60)
		if strings.Contains(got, "INSIDE") || !strings.HasSuffix(got, c.want) || !strings.HasPrefix(got, "start 0123"+Gap) {
			t.Errorf("%s: got %q, want the end %q", name, got, c.want)
		}
	}
}

func TestBlockFromHeadThroughTail(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, n := range []int{100, 5_000, 500_000} {
		got, changed := f.HeadTail("a <private>"+strings.Repeat("x ", n), 20, 20)
		if strings.Contains(got, "x") || !changed || !strings.HasPrefix(got, "a "+PrivateMark) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func TestATextThatRedactingLengthensIsNotCutToItsOwnLength(t *testing.T) {
	t.Parallel()
	f, err := New(Options{ExtraPatterns: []string{`ACME-\d+`}})
	if err != nil {
		t.Fatal(err)
	}
	const text, want = "see ACME-1 and ACME-2 about the release", "see [REDACTED] and [REDACTED] about the release"
	if got, _ := f.Head(text, 2000); got != want {
		t.Errorf("Head: %q", got)
	}
	if got, _ := f.HeadTail(text, 1200, 800); got != want {
		t.Errorf("HeadTail: %q", got)
	}
	if got, _ := f.HeadTail(text, 1<<62, 1<<62); got != want {
		t.Errorf("HeadTail without a limit: %q", got)
	}
}
