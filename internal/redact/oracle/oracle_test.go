// Package oracle contains a test with gitleaks as the oracle: everything that its default
// rules report in generated texts must be redacted. It is a separate module, so that the
// product does not depend on gitleaks.
package oracle

import (
	"fmt"
	"math/rand/v2"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
	"github.com/zricethezav/gitleaks/v8/report"

	"cairn/internal/redact"
)

// exempt contains the rules of which some findings may stay, with the reason.
var exempt = map[string]func(report.Finding) (reason string, ok bool){
	// The rule treats any 40 hexadecimal digits as a token if the word "sourcegraph" is
	// anywhere in the text. Such digits are Git hashes, which the contract excludes.
	// Tokens with their prefix or after a name are redacted.
	"sourcegraph-access-token": func(f report.Finding) (string, bool) {
		return "bare 40 hexadecimal digits", len(f.Secret) == 40 && strings.Trim(strings.ToLower(f.Secret), "0123456789abcdef") == ""
	},
	// The rule treats as a password any short quoted text after a name with "password" in
	// it, password_policy too, and after a comma or a ">"; the contract counts names that
	// end with the word, and what is assigned to them.
	"hashicorp-tf-password": func(f report.Finding) (string, bool) {
		_, after, _ := strings.Cut(strings.ToLower(f.Match), "password")
		after = strings.TrimLeft(after, "'\" ")
		return "no value of a name that ends with the word", after != "" && strings.ContainsAny(after[:1], "abcdefghijklmnopqrstuvwxyz0123456789_-.>,")
	},
}

// samplesPerRule is the number of secrets generated for every rule. Each is put into
// every context.
const samplesPerRule = 8

// contexts are the texts a secret is put into: %[1]s is a word of the rule's
// vendor, %[2]s the secret.
var contexts = []string{
	"export %[1]s_API_KEY=%[2]s\n",
	"{\"name\": \"x\", \"%[1]s_secret\": \"%[2]s\"}",
	"service:\n  %[1]s:\n    token: %[2]s\n    port: 80\n",
	"curl -s -H 'X-%[1]s-Token: %[2]s' https://api.example.com/v1/items",
	"Please use the %[1]s key: %[2]s and tell me what happens.",
	"https://api.example.com/v1/items?%[1]s_key=%[2]s ",
	"const %[1]sToken = '%[2]s';\n",
}

func TestEverySecretThatGitleaksFindsIsRedacted(t *testing.T) {
	t.Parallel()
	zerolog.SetGlobalLevel(zerolog.Disabled)
	detector, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		t.Fatal(err)
	}
	filter, err := redact.New(redact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id, rule := range detector.Config.Rules {
		if rule.Regex != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	secrets, findings, left := 0, map[string]int{}, map[string]int{}
	for i, id := range ids {
		random := rand.New(rand.NewPCG(uint64(i), 41))
		for range samplesPerRule {
			texts := textsOf(t, detector.Config.Rules[id], random)
			secrets += len(texts)
			for _, text := range texts {
				out, _ := filter.Text(text)
				for _, f := range find(detector, text, pathOf(id)) {
					findings[f.RuleID]++
					if !strings.Contains(out, f.Secret) {
						continue
					}
					if allow := exempt[f.RuleID]; allow != nil {
						if _, ok := allow(f); ok {
							continue
						}
					}
					if left[f.RuleID]++; left[f.RuleID] <= 3 {
						t.Errorf("%s: %q stays in %q", f.RuleID, f.Secret, out)
					}
				}
			}
		}
		if findings[id] == 0 {
			t.Logf("%s: gitleaks reports none of the samples", id)
		}
	}
	total := 0
	for _, n := range findings {
		total += n
	}
	t.Logf("%d texts, %d findings of %d rules", secrets, total, len(findings))
	if total < 2_000 || len(findings) < len(ids)*9/10 {
		t.Errorf("too few findings to prove anything: %d of %d rules", total, len(findings))
	}
}

func find(d *detect.Detector, text, path string) []report.Finding {
	found := d.Detect(detect.Fragment{Raw: text})
	if path != "" {
		found = append(found, d.Detect(detect.Fragment{Raw: text, FilePath: path})...)
	}
	return found
}

// pathOf names a file in which a rule that is bound to a path applies.
func pathOf(id string) string {
	switch id {
	case "freemius-secret-key":
		return "a.php"
	case "hashicorp-tf-password":
		return "a.tf"
	case "kubernetes-secret-yaml":
		return "a.yaml"
	case "nuget-config-password":
		return "nuget.config"
	}
	return ""
}

// textsOf generates a text that matches the rule, and puts its secret into every context.
func textsOf(t *testing.T, rule config.Rule, random *rand.Rand) []string {
	t.Helper()
	tree, err := syntax.Parse(rule.Regex.String(), syntax.Perl)
	if err != nil {
		t.Fatalf("%s: %v", rule.RuleID, err)
	}
	var text, secret string
	for range 50 { // what is generated around word boundaries need not match
		var b strings.Builder
		generate(&b, tree.Simplify(), random)
		text = b.String()
		if m := rule.Regex.FindStringSubmatch(text); m != nil {
			secret = m[0]
			for _, group := range m[1:] {
				if group != "" {
					secret = group
					break
				}
			}
			break
		}
	}
	if secret == "" {
		t.Logf("%s: no text made", rule.RuleID)
		return nil
	}
	texts := []string{text, "first line\n" + text + "\nlast line"}
	word := "service"
	if len(rule.Keywords) > 0 && !strings.ContainsAny(rule.Keywords[0], "-_.:/<= ") {
		word = rule.Keywords[0]
	}
	for _, c := range contexts {
		texts = append(texts, fmt.Sprintf(c, word, secret))
	}
	return texts
}

// generate writes a random text that the expression matches, boundaries aside.
func generate(b *strings.Builder, re *syntax.Regexp, random *rand.Rand) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			b.WriteRune(r)
		}
	case syntax.OpCharClass:
		b.WriteRune(pick(re.Rune, random))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('.')
	case syntax.OpCapture, syntax.OpConcat:
		for _, sub := range re.Sub {
			generate(b, sub, random)
		}
	case syntax.OpAlternate:
		generate(b, re.Sub[random.IntN(len(re.Sub))], random)
	case syntax.OpQuest:
		if random.IntN(2) == 0 {
			generate(b, re.Sub[0], random)
		}
	case syntax.OpStar, syntax.OpPlus:
		n := random.IntN(12)
		if re.Op == syntax.OpPlus {
			n += 12
		}
		for range n {
			if op := re.Sub[0].Op; op == syntax.OpAnyChar || op == syntax.OpAnyCharNotNL {
				b.WriteByte("abcdefghij 0123456789"[random.IntN(21)])
			} else {
				generate(b, re.Sub[0], random)
			}
		}
	}
}

// pick chooses a printable rune of a class where it has one.
func pick(ranges []rune, random *rand.Rand) rune {
	var choice []rune
	for r := rune(' '); r < 0x7f; r++ {
		for i := 0; i < len(ranges); i += 2 {
			if ranges[i] <= r && r <= ranges[i+1] {
				choice = append(choice, r)
				break
			}
		}
	}
	if len(choice) == 0 {
		return ranges[0]
	}
	return choice[random.IntN(len(choice))]
}
