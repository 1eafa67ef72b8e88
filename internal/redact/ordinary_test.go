package redact

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

//go:embed testdata/ordinary.txt
var ordinary string

// TestOrdinaryTextIsLeftAlone checks lines that developers and their agents commonly write
// and read.
func TestOrdinaryTextIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, level := range []Level{Standard, Strict} {
		f := mustFilter(t, Options{Level: level})
		for line := range strings.Lines(ordinary) {
			if got, changed := f.Text(line); changed {
				t.Errorf("%s: %q became %q", level, line, got)
			}
		}
	}
	f := mustFilter(t, Options{})
	if got, changed := f.Text(ordinary); changed {
		t.Errorf("the lines together become %q", got)
	}
}

// TestGateOfFalseRedactions is the contract's gate: at most one false redaction in
// 2,000 strings of ordinary developer text.
func TestGateOfFalseRedactions(t *testing.T) {
	t.Parallel()
	const n = 20_000
	f := mustFilter(t, Options{})
	g := generator{rand.New(rand.NewPCG(2026, 3))}
	wrong := 0
	for i := range n {
		s := g.text(i)
		if got, changed := f.Text(s); changed {
			if wrong++; wrong <= 20 {
				t.Logf("%q became %q", s, got)
			}
		}
	}
	if wrong > n/2000 {
		t.Errorf("%d false redactions in %d strings", wrong, n)
	}
	t.Logf("%d false redactions in %d strings", wrong, n)
}

// generator generates ordinary developer text from words and patterns.
type generator struct{ *rand.Rand }

var words = strings.Fields("account adapter agent alert api archive auth backup batch billing branch broker bucket build cache checkout client cluster " +
	"command commit config consumer context controller cookie counter credential cron customer daemon dashboard database deploy digest dispatcher document " +
	"domain driver editor email engine entry event export feature fetch filter folder gateway handler header health helper history hook identity image import " +
	"index ingest invoice issue item job journal kernel key label ledger library limit listener loader locale logger login lookup mailer manager mapper memory " +
	"merge message metric middleware migration mirror model module monitor network node notification object observer operator option order package page parser " +
	"password patch payment pipeline plugin policy pool prefix preview profile project prompt proxy publisher query queue reader record redis refresh region " +
	"registry release render report repository request resolver resource response retry review router runner runtime sandbox schedule schema scheduler scope search " +
	"secret selector server service session setting shard signal snapshot socket source stage status storage stream string subscriber summary sync system table " +
	"target task template tenant terminal test thread timeout timer token tracker transaction transport tree trigger tunnel update upload user validator value " +
	"vault vendor version view volume watcher webhook widget window worker workflow workspace writer")

func (g generator) word() string { return words[g.IntN(len(words))] }

func (g generator) joined(sep string, n int) string {
	w := make([]string, n)
	for i := range w {
		w[i] = g.word()
	}
	return strings.Join(w, sep)
}

// label is joined, but its last word does not name a secret.
func (g generator) label(sep string, n int) string {
	for {
		s := g.joined(sep, n)
		switch s[strings.LastIndexAny(s, "-_. ")+1:] {
		case "password", "secret", "token", "key", "credential":
			continue
		}
		return s
	}
}

func (g generator) camel(n int) string {
	var b strings.Builder
	for i := range n {
		w := g.word()
		if i > 0 {
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		b.WriteString(w)
	}
	return b.String()
}

func (g generator) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[g.IntN(len(alphabet))]
	}
	return string(b)
}

func (g generator) hex(n int) string { return g.of(hexes, n) }

func (g generator) uuid() string {
	return g.hex(8) + "-" + g.hex(4) + "-4" + g.hex(3) + "-a" + g.hex(3) + "-" + g.hex(12)
}

func (g generator) path() string {
	return g.joined("/", 2+g.IntN(4)) + "/" + g.joined("_", 1+g.IntN(3)) + "." + []string{"go", "ts", "rs", "py", "md", "yaml", "json", "test.tsx"}[g.IntN(8)]
}

func (g generator) pod() string {
	return g.joined("-", 1+g.IntN(3)) + "-" + g.of("456789bcdf", 8+g.IntN(3)) + "-" + g.of("bcdfghjklmnpqrstvwxz2456789", 5)
}

func (g generator) image() string {
	return fmt.Sprintf("registry.example.com/%s/%s:%d.%d.%d-%s", g.word(), g.joined("-", 2), g.IntN(9), g.IntN(30), g.IntN(30), g.hex(7))
}

func (g generator) text(i int) string {
	switch i % 40 {
	case 0:
		return "kubectl logs -f " + g.pod() + " -n " + g.joined("-", 2)
	case 1:
		return g.pod() + "   1/1   Running   0   3d4h"
	case 2:
		return fmt.Sprintf("job/%s-%d-%s completed", g.joined("-", 2), 28_000_000+g.IntN(999_999), g.of("bcdfghjklmnpqrstvwxz2456789", 5))
	case 3:
		return "docker pull " + g.image() + "@sha256:" + g.hex(64)
	case 4:
		return "docker run --rm " + g.image() + " " + g.word()
	case 5:
		return "git checkout -b " + g.word() + "/" + g.joined("-", 2+g.IntN(5))
	case 6:
		return g.hex(40) + " refs/heads/" + g.joined("-", 3)
	case 7:
		return "   " + g.hex(7) + ".." + g.hex(7) + "  " + g.word() + " -> origin/" + g.joined("-", 2)
	case 8:
		return g.hex(64) + "  " + g.path()
	case 9:
		return "id=" + g.uuid() + " parent=" + g.uuid()
	case 10:
		return "/home/jo/" + g.path() + fmt.Sprintf(":%d:%d: undefined: %s", g.IntN(900), g.IntN(80), g.camel(3))
	case 11:
		return "/Users/jo/.claude/projects/-Users-jo-" + g.joined("-", 3) + "/" + g.uuid() + ".jsonl"
	case 12:
		return "go test ./" + g.joined("/", 3) + "/... -run Test" + g.camel(4)
	case 13:
		return fmt.Sprintf("func (s *%s) %s(ctx context.Context, %s %s) error {", g.camel(2), g.camel(3), g.word(), g.camel(2))
	case 14:
		return "\t" + g.camel(2) + " := " + g.word() + "." + g.camel(3) + "(" + g.camel(2) + ", " + g.camel(1) + ")"
	case 15:
		return "const " + g.camel(2) + " = await " + g.word() + "." + g.camel(3) + "({ " + g.word() + ": " + g.camel(3) + "." + g.word() + " });"
	case 16:
		return "import { " + g.camel(3) + ", " + g.camel(2) + " } from \"@" + g.word() + "/" + g.joined("-", 2) + "\";"
	case 17:
		return "def " + g.joined("_", 4) + "(self, " + g.word() + ": str, " + g.word() + "=None):"
	case 18:
		return "    self." + g.joined("_", 3) + " = " + g.joined("_", 2) + "." + g.joined("_", 2)
	case 19:
		return "pub fn " + g.joined("_", 3) + "(&self, " + g.word() + ": &str) -> Result<" + g.camel(2) + ", Error> {"
	case 20:
		return "let " + g.joined("_", 2) + " = " + g.word() + "::" + g.camel(2) + "::new(" + g.word() + ".clone());"
	case 21:
		return "import com.example." + g.joined(".", 3) + "." + g.camel(3) + ";"
	case 22:
		return fmt.Sprintf("2026-03-%02dT10:%02d:32.%06dZ INFO %s=%d %s=%s", 1+g.IntN(28), g.IntN(60), g.IntN(999_999), g.label("_", 2), g.IntN(99_999), g.label("", 1), g.joined("-", 2))
	case 23:
		return "level=warn msg=\"" + g.joined(" ", 6) + "\" component=" + g.joined(".", 2) + " trace_id=" + g.hex(32)
	case 24:
		return "The " + g.word() + " " + g.joined(" ", 5) + " is wrong because the " + g.word() + " was not there."
	case 25:
		return "Please add a " + g.joined("-", 2) + " to " + g.path() + ", then run the tests for `" + g.camel(3) + "`."
	case 26:
		return "https://example.com/" + g.joined("/", 4) + "?" + g.word() + "_id=" + g.hex(8) + "&page=" + fmt.Sprint(g.IntN(99)) + "#" + g.joined("-", 3)
	case 27:
		return "npm install @" + g.word() + "/" + g.joined("-", 3) + "@" + fmt.Sprintf("%d.%d.%d", g.IntN(20), g.IntN(20), g.IntN(20))
	case 28:
		return "sha512-" + g.of(base64, 86) + "=="
	case 29:
		return "github.com/" + g.word() + "/" + g.joined("-", 2) + " v0.0.0-20260304101532-" + g.hex(12) + " h1:" + g.of(base64, 43) + "="
	case 30:
		return strings.ToUpper(g.label("_", 3)) + "=" + g.joined("-", 3)
	case 31:
		return "--" + g.label("-", 2) + "=" + g.path() + " --" + g.label("-", 2) + " --" + g.joined("-", 3)
	case 32:
		return "rg -n '" + g.camel(2) + "|" + g.joined("_", 3) + "' " + g.joined("/", 3)
	case 33:
		return "  " + g.label("-", 2) + ":\n    image: " + g.image() + "\n    " + g.label("-", 2) + ": " + g.joined("-", 2)
	case 34:
		return "{\"" + g.camel(2) + "s\": " + fmt.Sprint(g.IntN(9_999_999)) + ", \"" + g.joined("_", 2) + "s\": [\"" + g.joined("-", 3) + "\"]}"
	case 35:
		return "max_tokens=" + fmt.Sprint(1024+g.IntN(99_999)) + " the token count was " + fmt.Sprint(g.IntN(99_999))
	case 36:
		return "ERROR " + g.label(".", 3) + ": " + g.word() + " token: the " + g.joined(" ", 3)
	case 37:
		return "/var/folders/" + g.of(smalls, 2) + "/" + g.of(smalls+digits, 30) + "/T/tmp." + g.of(alnum, 10)
	case 38:
		return "toolu_01" + g.of(alnum, 22) + " " + g.camel(3)
	default:
		return "mcp__" + g.joined("_", 2) + "__" + g.joined("_", 4) + " " + g.path()
	}
}
