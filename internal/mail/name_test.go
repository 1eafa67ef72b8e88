package mail

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/mail/mailtest"
)

func TestTheWordListsHoldWhatPeopleWriteByHand(t *testing.T) {
	t.Parallel()
	for _, list := range [...]struct {
		words    []string
		required string
	}{
		{adjectives[:], "red orange yellow green blue purple pink brown black white gray gold silver jade amber stormy misty sunny frosty"},
		{nouns[:], "lake river creek pond stone mountain canyon valley hill forest meadow castle tower bridge harbor bear fox dog wolf hawk owl deer"},
	} {
		if len(list.words) < 60 || !slices.IsSorted(list.words) || len(slices.Compact(slices.Clone(list.words))) != len(list.words) {
			t.Errorf("%d words, sorted %v", len(list.words), slices.IsSorted(list.words))
		}
		for _, word := range strings.Fields(list.required) {
			if !slices.Contains(list.words, word) {
				t.Errorf("%s is missing", word)
			}
		}
		for _, word := range list.words {
			if len(word) < minWord || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") != "" {
				t.Errorf("%q is no word", word)
			}
		}
	}
	if pairs := len(adjectives) * len(nouns); gcd(pairs, stride) != 1 {
		t.Errorf("steps of %d do not meet all of %d pairs", stride, pairs)
	}
	split := map[string]string{}
	for _, a := range adjectives {
		for _, n := range nouns {
			if other, twice := split[a+n]; twice {
				t.Errorf("%s and %s are written alike", other, a+" "+n)
			}
			split[a+n] = a + " " + n
		}
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func TestGivenNamesAreAnAdjectiveAndANoun(t *testing.T) {
	t.Parallel()
	for given, wanted := range map[string]string{
		"GreenLake": "GreenLake", "greenlake": "GreenLake", "GREEN-LAKE": "GreenLake", " green lake ": "GreenLake", "Green_Lake!": "GreenLake",
		"FrostyOwl": "FrostyOwl", "JadeHarbor": "JadeHarbor",
		"": "", "Green": "", "Lake": "", "LakeGreen": "", "GreenGreen": "", "GreenLake7": "", "GreenLakeé": "", "BigLake": "", "GreenLakeLake": "",
		"green" + strings.Repeat("-", 119) + "lake": "GreenLake",
		"green" + strings.Repeat("-", 120) + "lake": "",
		strings.Repeat("x", 5000):                   "",
		"\u202eGreenLake":                           "GreenLake",
		"Ｇreen Lake":                                "",
		"gr\u00adeen lake":                          "GreenLake",
		"redfox":                                    "RedFox",
		"goldgold":                                  "",
		"silverstone":                               "SilverStone",
		"SİLVERSTONE":                               "",
		fmt.Sprintf("%s%s", adjectives[0], nouns[len(nouns)-1]):        pascal(adjectives[0], nouns[len(nouns)-1]),
		fmt.Sprintf("%s %s", adjectives[len(adjectives)-1], nouns[0]):  pascal(adjectives[len(adjectives)-1], nouns[0]),
		fmt.Sprintf("%s %s", adjectives[len(adjectives)-1], "nothing"): "",
	} {
		got, ok := WholeName(given)
		if got != wanted || ok != (wanted != "") {
			t.Errorf("%.40q: %q %v, want %q", given, got, ok, wanted)
		}
	}
}

func TestDetectorsNameTheFirstMistakeInAName(t *testing.T) {
	t.Parallel()
	check := func(code string, names ...string) {
		t.Helper()
		for _, name := range names {
			if got := MistakeIn(name); got != code {
				t.Errorf("%q: %q, want %q", name, got, code)
			}
		}
	}
	for _, name := range programNames {
		check(CodeProgramName, name, strings.ToUpper(name), "  "+name+" ")
	}
	for _, word := range modelWords {
		check(CodeModelName, "x"+word+"y", strings.ToUpper(word)+"5")
	}
	for _, word := range roleWords {
		check(CodeDescriptive, word, "My"+strings.ToUpper(word)+"2", "the-"+word)
	}
	check(CodeEmail, "ann@b.example", "a@b.c", "agent@x.io", "ALL@B.EXAMPLE")
	check(CodeBroadcast, "all", "@all", "ALL", "everyone", "@Everyone", "broadcast", "@broadcast", "*", "@*")
	check(CodeUserName, "ann", "jo", "abcdefghijklmnop", "root")
	check("", "GreenLake", "greenlake", "x", "abcdefghijklmnopq", "Ann", "a@b", "@b.c", "a@", "a@b@c.d", "Nobody", "", "a.b", "@@all", "**")
	// The order: a program before a model, a model before an address, an address before a
	// role, a broadcast before a user, a role before a user.
	check(CodeProgramName, "claude")
	check(CodeModelName, "claude-3", "opus@b.example", "sonnet-agent")
	check(CodeEmail, "worker@b.example")
	check(CodeDescriptive, "worker")
}

func FuzzAnAcceptedNameIsAPairOfTheListsAndStaysItself(f *testing.F) {
	for _, s := range []string{"GreenLake", "green lake", "\xff", "İ", "ſtone", "Kelvin", "red\u0000fox", "x@y.z", "*"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, given string) {
		name, ok := WholeName(given)
		if !ok {
			if name != "" {
				t.Errorf("%q: refused, but %q", given, name)
			}
			return
		}
		if utf8.RuneCountInString(given) > MaxName || MistakeIn(given) != "" {
			t.Errorf("%q is accepted", given)
		}
		again, ok := WholeName(name)
		if !ok || again != name || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz") != "" {
			t.Errorf("%q: %q, then %q", given, name, again)
		}
	})
}

func TestGeneratedNamesAreFreeAndGetDigitsOnceNineTenthsAreTaken(t *testing.T) {
	t.Parallel()
	const pairs = len(adjectives) * len(nouns)
	taken := map[string]bool{"humanoverseer": true, "greenlake07": true}
	random := rand.New(rand.NewPCG(1, 2))
	for _, pair := range random.Perm(pairs)[:9*pairs/10-30] {
		taken[adjectives[pair/len(nouns)]+nouns[pair%len(nouns)]] = true
	}
	for i := 9*pairs/10 - 30; i < 9*pairs/10+30; i++ {
		name := freeNameIn(taken, random.IntN)
		if taken[strings.ToLower(name)] {
			t.Fatalf("%s was taken", name)
		}
		taken[strings.ToLower(name)] = true
		_, plain := WholeName(name)
		if full := 10*i >= 9*pairs; plain == full {
			t.Fatalf("name %d of %d is %s", i+1, pairs, name)
		}
		if pair, ok := WholeName(name[:len(name)-2]); !plain && (!ok || pair != name[:len(name)-2] || strings.Trim(name[len(name)-2:], "0123456789") != "") {
			t.Fatalf("%s is no pair with two digits", name)
		}
	}
}

func TestANumberedNameIsTheLastOneThatIsFreeOrNone(t *testing.T) {
	t.Parallel()
	taken := map[string]bool{}
	for d := range 100 {
		taken[fmt.Sprintf("greenlake%02d", d)] = true
	}
	mailtest.Want(t, "a name of none", withDigits("GreenLake", taken, rand.IntN), "")
	delete(taken, "greenlake07")
	mailtest.Want(t, "the last one", withDigits("GreenLake", taken, rand.IntN), "GreenLake07")
}

func TestSuggestionsAreTheNearestFive(t *testing.T) {
	t.Parallel()
	for _, c := range [...]struct {
		a, b string
		want float64
	}{
		{"GreenLake", "greenlake", 1}, {"GreenLake", "GreenLane", 8.0 / 9}, {"abc", "xyz", 0}, {"", "abc", 0}, {"", "", 1}, {"kitten", "sitting", 1 - 3.0/7}, {"ab", "ba", 0},
		{"Ünal", "ünal", 1},
	} {
		mailtest.Want(t, c.a+" and "+c.b, likeness(c.a, c.b), c.want)
		mailtest.Want(t, c.b+" and "+c.a, likeness(c.b, c.a), c.want)
	}
	all := []Suggestion{{"a", 0.39}, {"c", 0.5}, {"b", 0.5}, {"d", 0.4}, {"e", 0.9}, {"f", 0.6}, {"g", 0.7}}
	mailtest.Want(t, "best", fmt.Sprint(BestSuggestions(all)), "[{e 0.9} {g 0.7} {f 0.6} {b 0.5} {c 0.5}]")
}
