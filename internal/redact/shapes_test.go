package redact

import (
	"strings"
	"testing"

	"cairn/internal/redact/shape"
)

func TestKnownShapesAreRedactedAnywhere(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{Level: Relaxed})
	for _, k := range knownShapes() {
		for _, c := range []string{"%", "a % b", `{"x":"%"}`, "x=%", "x: %\n", "(%)", "'%'", "<%>", "see %.", "%, and", "[%]", "--flag=%", "https://h/p?x=%&y=1", "\t%\r\n", "`%`", "é%é", "%\\n", "/%/"} {
			text := strings.Replace(c, "%", k.secret, 1)
			got, changed := f.Text(text)
			if leaks(got, k.secret) || !changed {
				t.Errorf("%s: %q became %q", k.name, text, got)
			}
			if !strings.Contains(got, Mark) {
				t.Errorf("%s: no mark in %q", k.name, got)
			}
		}
	}
}

// leaks reports whether s contains eight consecutive letters of secret.
func leaks(s, secret string) bool {
	const n = 8
	for i := 0; i+n <= len(secret); i++ {
		if strings.Contains(s, secret[i:i+n]) {
			return true
		}
	}
	return false
}

func TestShapesHaveTheirRealLengthAndAlphabet(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{Level: Relaxed})
	for _, s := range []string{
		"AK" + "IA" + letters(1, capitals, 15), "AK" + "IA" + letters(1, capitals, 17), "AK" + "IA" + letters(1, smalls, 16), "xAK" + "IA" + letters(1, capitals, 16),
		"gh" + "p_" + letters(2, alnum, 35), "gh" + "p_" + letters(2, alnum, 20) + "-" + letters(3, alnum, 20),
		"github_" + "pat_" + letters(3, alnum, 40), "gl" + "pat-" + letters(4, base64u, 19), "xo" + "xb-your-token-here", "xo" + "xb-123",
		"AI" + "za" + letters(5, alnum, 20), "AI" + "za" + letters(5, alnum, 36), "ya" + "29.short", "sk-" + "ant-short", "sk-" + letters(6, alnum, 19),
		"sk_" + "live_short", "np" + "m_run_script_with_arguments_and_more", "np" + "m_" + letters(7, alnum, 35), "py" + "pi-package-name", "hf" + "_hub_download",
		"S" + "G.short.name", "dop_" + "v1_" + letters(8, hexes, 63), "dop_" + "v1_" + letters(8, "ghijk", 64), "shp" + "at_" + letters(9, hexes, 31), "hv" + "s.short",
		"dckr_" + "pat_short", "AGE-" + "SECRET-KEY-1SHORT", "12345:A" + "A" + letters(9, base64u, 33), "123456789:A" + "A" + letters(9, base64u, 20),
		"ey" + "Jhb.not.it", "ey" + "J", "eye.eye.eye",
	} {
		if got, changed := f.Text("a " + s + " b"); changed {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestNamesThatBeginLikeKeysStay(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{})
	for _, s := range []string{
		"sk-iplink", "sk-learn-contrib-model-selection", "sk-estimator-doc-link", "sk-container-id-1", "sk-toggleable__content", "task-sk-manager-worker-deployment",
		"SG.py", "npm_config_registry", "npm_package_json_version_and_more_names", "hf_transfer_enabled_for_downloads", "pypi-publish-workflow-with-trusted-publisher",
		"key-management-service", "glpat-documentation", "xoxo-love-and-kisses", "AKIAdvisor", "AIzawa", "ghp_token", "ghs_something", "whsec_verify",
		"pat.test.name", "sat.solver.module", "s.substring", "v1.0-beta", "live_reload_enabled", "test_case_names_that_are_long", "pk.primary.key", "cio-utils",
	} {
		if got, changed := f.Text("use " + s + " here"); changed {
			t.Errorf("%q became %q", s, got)
		}
	}
}

func TestWebTokensOfEveryKind(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{Level: Relaxed})
	head, body, tail := "ey"+"J"+letters(1, base64u, 30), "ey"+"J"+letters(2, base64u, 300), letters(3, base64u, 86)
	for name, token := range map[string]string{
		"signed": head + "." + body + "." + tail, "unsigned": head + "." + body + ".", "no signature": head + "." + body,
		"encrypted":        head + "." + letters(4, base64u, 40) + "." + letters(5, base64u, 16) + "." + body + "." + tail,
		"encrypted, empty": head + ".." + letters(5, base64u, 16) + "." + body + "." + tail,
		"long":             head + "." + strings.Repeat(body, 30) + "." + tail,
	} {
		for _, c := range []string{"%", "x %.", "Bearer %", `"%"`, "?jwt=%&a=b"} {
			if got, _ := f.Text(strings.Replace(c, "%", token, 1)); leaks(got, token) {
				t.Errorf("%s in %q: %.200q is left", name, c, got)
			}
		}
	}
}

// TestTableIsWellFormed checks the assumptions of match about the table.
func TestTableIsWellFormed(t *testing.T) {
	t.Parallel()
	check := func(name, literal, parts string, fold bool) {
		if len(literal) < 3 || fold && literal != strings.ToLower(literal) {
			t.Errorf("%s: literal %q", name, literal)
		}
		if strings.ToLower(name) != name || strings.ContainsAny(name, " -") {
			t.Errorf("rule name %q", name)
		}
		for p := parts; p != ""; {
			if p[0] == '\'' {
				n := strings.IndexByte(p[1:], '\'')
				if n < 1 {
					t.Fatalf("%s: quotes in %q", name, parts)
				}
				p = p[n+2:]
				continue
			}
			class, low, high, rest := shape.Part(p)
			if strings.IndexByte(shape.Classes, class) < 0 || low < 1 || high < low {
				t.Fatalf("%s: part %q of %q", name, p, parts)
			}
			p = rest
		}
	}
	for _, s := range shape.Shapes {
		check(s.Name, s.Literal, s.Parts, s.Flags&shape.AnyCase != 0)
	}
	for _, v := range shape.Vendors {
		check(v.Name, v.Keyword, v.Parts, true)
	}
	for _, m := range shape.Middles {
		check(m.Name, m.Literal, m.Parts, false)
		check(m.Name, m.Literal, m.Before, false)
	}
	for _, a := range anchors {
		check("anchor", a.literal, "", true)
	}
	for _, w := range webhooks {
		check("webhook", w, "", true)
	}
}

func TestEveryShapeOfTheTableMatchesItsOwnSample(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{Level: Relaxed})
	for i, s := range shape.Shapes {
		secret := s.Literal + sample(s.Parts, uint64(i))
		if s.Flags&shape.Needs0to9 != 0 && strings.HasSuffix(s.Parts, "+") {
			secret += "-1"
		}
		got, _ := f.Text("first " + secret + " last")
		if body := secret[len(s.Literal):]; leaks(got, body) {
			t.Errorf("%s: %q became %q", s.Name, secret, got)
		}
	}
	for i, m := range shape.Middles {
		secret := letters(uint64(i), alnum, 6) + "_" + letters(uint64(i), alnum, 29)
		if m.Before == "a14" {
			secret = letters(uint64(i), alnum, 14)
		}
		secret += m.Literal + sample(m.Parts, uint64(i))
		if got, _ := f.Text("first " + secret + " last"); leaks(got, secret) {
			t.Errorf("%s: %q became %q", m.Name, secret, got)
		}
	}
}

func TestVendorsKeysAreRedactedAfterTheirName(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{Level: Relaxed})
	for i, v := range shape.Vendors {
		value := sample(v.Parts, uint64(i))
		for _, c := range []string{"%_x = '#'", `{"%Value": "#"}`, "%: #\n", "export %_ID=#", "%-x => \"#\";"} {
			text := strings.NewReplacer("%", v.Keyword, "#", value).Replace(c)
			if got, _ := f.Text(text); strings.Contains(got, value) {
				t.Errorf("%s: %q became %q", v.Name, text, got)
			}
		}
		if got, changed := f.Text("we moved to " + v.Keyword + " last year, and it is fine"); changed {
			t.Errorf("%s: prose became %q", v.Name, got)
		}
	}
}

// sample generates a text that matches the given parts.
func sample(parts string, seed uint64) string {
	var b strings.Builder
	for parts != "" {
		if parts[0] == '\'' {
			n := strings.IndexByte(parts[1:], '\'')
			b.WriteString(parts[1 : n+1])
			parts = parts[n+2:]
			continue
		}
		class, low, _, rest := shape.Part(parts)
		alphabet := ""
		for c := range byte(128) {
			if shape.InClass(class, c) && c > ' ' && c != '\\' && c != '=' {
				alphabet += string(rune(c))
			}
		}
		seed++
		b.WriteString(letters(seed*31, alphabet, low))
		parts = rest
	}
	return b.String()
}

func TestRareShapesWithoutABeginning(t *testing.T) {
	t.Parallel()
	f := mustFilter(t, Options{Level: Relaxed})
	for _, s := range []string{
		"s." + letters(1, alnum, 20) + "a1b2", "S" + "K" + letters(2, hexes, 32), letters(3, alnum, 3) + "8Q~" + letters(4, alnum, 34),
		letters(5, digits, 15) + "|" + letters(6, alnum, 27), letters(5, digits, 16) + "%" + letters(6, alnum, 40), "bot" + "/",
		"https://api.telegram.org/bot123456789:A" + "A" + letters(7, base64u, 33) + "/sendMessage",
	} {
		got, changed := f.Text("see " + s + " there")
		if s == "bot/" {
			if changed {
				t.Errorf("%q became %q", s, got)
			}
			continue
		}
		if !changed || leaks(got, s[max(0, len(s)-40):max(0, len(s)-14)]) {
			t.Errorf("%q became %q", s, got)
		}
	}
}
