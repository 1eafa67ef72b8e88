package redact

import (
	"strings"
	"testing"

	"cairn/internal/redact/looks"
)

// TestRandomWordsAreRedacted counts misses, because random text may look like a name by
// chance. The counts depend on fixed seeds.
func TestRandomWordsAreRedacted(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for name, c := range map[string]struct {
		alphabet string
		length   int
		missed   int // maximum number of 2,000
	}{
		"letters and digits, 20": {alnum, 20, 4}, "letters and digits, 24": {alnum, 24, 2}, "letters and digits, 32": {alnum, 32, 1}, "letters and digits, 64": {alnum, 64, 0},
		"base64, 24": {base64, 24, 20}, "base64, 32": {base64, 32, 8}, "base64, 40": {base64, 40, 4}, "base64, 88": {base64, 88, 0},
		"base64url, 24": {base64u, 24, 20}, "base64url, 43": {base64u, 43, 4}, "base64url, 86": {base64u, 86, 0},
		"small letters and digits, 32": {smalls + digits, 32, 4}, "small letters and digits, 48": {smalls + digits, 48, 0},
		"base32, 32": {capitals + "234567", 32, 4}, "base32, 52": {capitals + "234567", 52, 0},
		"with signs, 32": {alnum + "!#$%^&*@", 32, 20},
	} {
		missed := 0
		for i := range uint64(2000) {
			word := letters(i, c.alphabet, c.length)
			if looks.Shannon(word) < 4 || looks.HexRun(word) {
				continue
			}
			got, _ := f.Text("see " + word + " there")
			if strings.Contains(got, word) {
				missed++
			} else if leaks(got, word) && !strings.ContainsAny(word, "/!#$%^&*@") {
				t.Errorf("%s: a part of %q is left in %q", name, word, got)
			}
		}
		if missed > c.missed {
			t.Errorf("%s: %d of 2000 were missed, want at most %d", name, missed, c.missed)
		}
	}
}

func TestOnlyTheRandomPartIsRedacted(t *testing.T) {
	t.Parallel()
	r := letters(11, alnum, 32)
	redactions{
		{"https://example.com/reset/" + r + "?lang=en", "https://example.com/reset/[REDACTED]?lang=en"},
		{"NAME=" + r, "NAME=[REDACTED]"},
		{"id:" + r + ".", "id:[REDACTED]."},
		{"/srv/app/data/" + r + "/index.html", "/srv/app/data/[REDACTED]/index.html"},
		{`{"id":"` + r + `"}`, `{"id":"[REDACTED]"}`},
	}.run(t, mustFilter(t, Options{}))
}

func TestLevels(t *testing.T) {
	t.Parallel()
	long, short := letters(11, alnum, 32), letters(12, alnum, 16)
	for level, want := range map[Level][2]bool{Strict: {true, true}, Standard: {true, false}, "": {true, false}, Relaxed: {false, false}} {
		f := mustFilter(t, Options{Level: level})
		for i, word := range []string{long, short} {
			if _, changed := f.Text("see " + word + " there"); changed != want[i] {
				t.Errorf("level %q, %d letters: taken out %v, want %v", level, len(word), changed, want[i])
			}
		}
		if _, changed := f.Text("password=hunter2"); !changed {
			t.Errorf("level %q leaves a password", level)
		}
	}
}

func TestRandomButPublicTextStays(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{Standard, Strict} {
		untouched{
			"550e8400-e29b-41d4-a716-446655440000", "id=550E8400-E29B-41D4-A716-446655440000", "/a/550e8400-e29b-41d4-a716-446655440000/7d444840-9dc0-11d1-b245-5ffdce74fad2.json",
			letters(1, hexes, 7), letters(2, hexes, 12), letters(3, hexes, 32), letters(4, hexes, 40), letters(5, hexes, 64), letters(4, hexes, 40) + ".." + letters(6, hexes, 40),
			"sha256:" + letters(5, hexes, 64), "ghcr.io/org/app@sha256:" + letters(5, hexes, 64), "registry.example.com:5000/team/app:v1.2.3-20260304-" + letters(1, hexes, 7),
			"sha512-" + letters(7, base64, 86) + "==", "h1:" + letters(8, base64, 43) + "=", "SHA256:" + letters(9, base64, 43),
			"ssh-ed25519 AAAA" + "C3NzaC1lZDI1NTE5AAAAI" + letters(10, base64, 43) + " me@host",
			"01JABCDEFGHJKMNPQRSTVWXYZ0", "toolu_" + letters(11, alnum, 24), "req_" + letters(12, alnum, 24), "PR_kw" + letters(13, alnum, 14),
			"/var/folders/ab/" + letters(14, smalls+digits, 30) + "/T/tmp.abcdef", "web-7d4b9c6f5d-x2x8z", "nightly-backup-28374650-x7k2p", "0x7ffd3c4a5b60",
		}.run(t, mustFilter(t, Options{Level: level}))
	}
}
