package redact

import (
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
	"unsafe"

	"cairn/internal/fault"
)

func TestNewNamesAnInvalidPatternByNumberOnly(t *testing.T) {
	t.Parallel()
	_, err := New(Options{ExtraPatterns: []string{`ok[0-9]+`, `broken(`}})
	f := fault.As(err)
	if f == nil || f.Kind != fault.Invalid || f.Code != "invalid_pattern" {
		t.Fatalf("error %+v, want kind Invalid, code invalid_pattern", f)
	}
	if !strings.Contains(f.Message, "2") || strings.Contains(f.Message+f.Hint, "broken") {
		t.Errorf("message %q must have the number 2 and not the pattern", f.Message)
	}
}

func TestNewRefusesAnUnknownLevel(t *testing.T) {
	t.Parallel()
	if _, err := New(Options{Level: "loose"}); fault.KindOf(err) != fault.Invalid || !fault.HasCode(err, "invalid_level") {
		t.Errorf("error %v, want Invalid invalid_level", err)
	}
}

func TestExtraPatternsAddToTheRules(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{ExtraPatterns: []string{`emp-[0-9]{6}`, `[A-Z]{6,}`}})
	got, changed := f.Text("badge emp-123456 and " + "password=hunter2 " + Mark + " SHOUT SHOUTING")
	want := "badge [REDACTED] and password=[REDACTED] [REDACTED] SHOUT [REDACTED]"
	if got != want || !changed {
		t.Errorf("got %q, want %q", got, want)
	}
	if counts := f.Counts("emp-123456 emp-654321"); counts["extra_pattern_1"] != 2 || len(counts) != 1 {
		t.Errorf("counts %v", counts)
	}
}

func TestAllowedStringsAreKept(t *testing.T) {
	t.Parallel()
	key, url := fakeGitHub(), "postgres://dev:dev@localhost/app"
	f := mustFilter(t, Options{Allow: []string{"hunter2", key, url, ""}})
	kept := "password=hunter2; " + key + " " + url
	if got, changed := f.Text(kept); changed || got != kept {
		t.Errorf("got %q", got)
	}
	for _, s := range []string{"password=hunter22", "password=xhunter2", "postgres://dev:dev@elsewhere/app"} {
		if _, changed := f.Text(s); !changed {
			t.Errorf("%q is not allowed but was kept", s)
		}
	}
	if v, changed := f.Value(map[string]any{"password": "hunter2", "token": float64(12345678)}); !changed || v.(map[string]any)["password"] != "hunter2" {
		t.Errorf("value %v", v)
	}
}

func TestTextWithoutSecretsComesBackUncopied(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, s := range []string{"", "x", "päth/ünd/wörter", repeatTo(prose, 4000), "\xff\xfe not UTF-8 \xff", Mark, PrivateMark, "a" + Mark + "b"} {
		got, changed := f.Text(s)
		if changed || got != s || unsafe.StringData(got) != unsafe.StringData(s) {
			t.Errorf("%.40q came back as %.40q, changed %v", s, got, changed)
		}
	}
}

// Not parallel, because allocations are counted for the whole process.
func TestTextWithoutSecretsAllocatesNothing(t *testing.T) {
	f := mustFilter(t, Options{})
	text := repeatTo(prose, 4000)
	if n := testing.AllocsPerRun(20, func() { f.Text(text) }); n > 0 {
		t.Errorf("%v allocations for a text without secrets", n)
	}
}

func TestTextIsIdempotent(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{Strict, Standard, Relaxed} {
		f := mustFilter(t, Options{Level: level})
		texts := []string{
			"password=" + Mark + "tail", `"token": "` + Mark + ` and more"`, "https://u:" + Mark + "@h/x?sig=" + Mark + "&key=abcdefgh",
			"x=" + fakeGitHub() + "/" + letters(3, alnum, 30), "password=<" + fakeGitHub() + ">", "<private>a<private>b</private>c", "curl -u a:" + Mark,
		}
		for _, k := range knownShapes() {
			texts = append(texts, "a "+k.secret+" b", "token="+k.secret+";"+k.secret)
		}
		for _, h := range hostile() {
			texts = append(texts, repeatTo(h.text, 4096))
		}
		for _, s := range texts {
			once, changed := f.Text(s)
			twice, again := f.Text(once)
			if twice != once || again {
				t.Errorf("level %s, %.60q: first %.80q, then %.80q", level, s, once, twice)
			}
			if !changed && once != s {
				t.Errorf("%.60q was changed silently", s)
			}
		}
	}
}

func TestInvalidUTF8IsKeptAndValidStaysValid(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	got, changed := f.Text("\xff\xc3 password=hunt\xffer2 \xe2\x82 " + fakeGitHub() + " \xf0")
	if want := "\xff\xc3 password=[REDACTED] \xe2\x82 [REDACTED] \xf0"; !changed || got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, s := range []string{"пароль password=секрет👍 конец", "«password»: «x» password: \"ключ ключ\" ✓", "token=日本語日本語日本語"} {
		if got, _ := f.Text(s); !utf8.ValidString(got) {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestCountsNameTheRules(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	got := f.Counts("password=hunter2 " + fakeGitHub() + " <private>x</private> https://u:pw@h Cookie: a=b; c=d")
	want := map[string]int{ruleNamed: 1, "github_token": 1, rulePrivate: 1, ruleURLPassword: 1, ruleCookie: 2}
	for rule, n := range want {
		if got[rule] != n {
			t.Errorf("%s: %d, want %d (all: %v)", rule, got[rule], n, got)
		}
	}
	if got := f.Counts("nothing here"); got == nil || len(got) != 0 {
		t.Errorf("counts of a plain text: %v", got)
	}
}

func TestFilterServesManyGoroutines(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{ExtraPatterns: []string{"zz+"}, Allow: []string{"keep"}})
	text := repeatTo(prose+code, 8192) + " password=hunter2 zzz " + fakeJWT(5)
	want, _ := f.Text(text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got, _ := f.Text(text); got != want {
					t.Error("another goroutine got another text")
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestHostileTextIsHandled checks every hostile text at a length for which quadratic work
// would take minutes. The test's time limit detects that.
func TestHostileTextIsHandled(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, h := range hostile() {
		for _, glue := range []string{"", "\n", " "} {
			s := repeatTo(h.text+glue, 1<<18)
			if out, changed := f.Text(s); !changed && out != s {
				t.Errorf("%s: changed silently", h.name)
			}
		}
	}
}
