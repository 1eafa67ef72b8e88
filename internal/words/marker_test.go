package words

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestStemsAreThoseOfTheTokenizer(t *testing.T) {
	t.Parallel()
	db := inMemory(t)
	for _, q := range []string{
		`CREATE VIRTUAL TABLE w USING fts5 (x, tokenize = 'porter unicode61 remove_diacritics 2')`,
		`CREATE VIRTUAL TABLE v USING fts5vocab (w, instance)`,
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t rapid.TB, word string) {
		if _, err := db.Exec(`DELETE FROM w`); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(`INSERT INTO w (x) VALUES (?)`, word); err != nil {
			t.Fatal(err)
		}
		var want string
		if err := db.QueryRow(`SELECT term FROM v`).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := stem(word); got != want {
			t.Errorf("stem(%q) = %q, the tokenizer has %q", word, got, want)
		}
	}
	for _, word := range strings.Fields(`caresses ponies ties caress cats feed agreed plastered bled motoring sing conflated troubled
		sized hopping tanned falling hissing fizzed failing filing happy sky relational conditional rational valenci hesitanci digitizer
		conformabli radicalli differentli vileli analogousli vietnamization predication operator feudalism decisiveness hopefulness
		callousness formaliti sensitiviti sensibiliti triplicate formative formalize electriciti electrical hopeful goodness revival
		allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent adoption homologou
		communism activate angulariti homologous effective bowdlerize probate rate cease controll roll yes by sayings oed geology
		decisions resolved transition archaeology ied ing ss s eed logi`) {
		check(t, word)
	}
	stems := rapid.StringMatching(`[a-z]{0,6}(sses|ies|eed|ed|ing|y|ational|izer|logi|bli|ation|ator|icate|ative|ful|ness|al|ement|ent|ion|ll|e|s|)`)
	rapid.Check(t, func(t *rapid.T) {
		if word := stems.Draw(t, "word"); word != "" {
			check(t, word)
		}
	})
}

func TestSnippets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("filler text ", 40)
	for _, c := range []struct {
		name, query string
		texts       []string
		want        string
	}{
		{"a word", "deploy", []string{"we deploy now"}, "we **deploy** now"},
		{"its forms", "decisions", []string{"one decision"}, "one **decision**"},
		{"case and accents", "resume", []string{"the Résumé"}, "the **Résumé**"},
		{"an identifier by a part", "user", []string{"call getUserById()"}, "call **getUserById**()"},
		{"an identifier in small letters", "getuserbyid", []string{"call getUserById()"}, "call **getUserById**()"},
		{"a prefix", "depl*", []string{"a deployment"}, "a **deployment**"},
		{"no prefix", "depl", []string{"a deployment"}, "a deployment"},
		{"Han", "本語", []string{"日本語です"}, "日**本****語**です"},
		{"operators are not marked", "a1 AND b1", []string{"a1 AND b1"}, "**a1** AND **b1**"},
		{"line breaks", "b", []string{"a\n\tb"}, "a  **b**"},
		{"the text with most terms", "red blue", []string{"red", "red blue"}, "**red** **blue**"},
		{"the first of equal ones", "red", []string{"a red", "red"}, "a **red**"},
		{"nothing found", "x", []string{"", " some text"}, "some text"},
		{"nothing at all", "x", []string{"", ""}, ""},
	} {
		got := NewMarker(c.query).Snippet(200, c.texts...)
		if strings.ReplaceAll(got, "****", "") != strings.ReplaceAll(c.want, "****", "") {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	got := NewMarker("needle").Snippet(200, long+"the needle here "+long)
	if !strings.Contains(got, "the **needle** here") || !strings.HasPrefix(got, "…") || !strings.HasSuffix(got, "…") ||
		utf8.RuneCountInString(strings.ReplaceAll(got, "**", "")) > 200 {
		t.Errorf("far down in a text: %q", got)
	}
}

func TestAnyOfFindsEachWord(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	match := AnyOf(`("alpha AND beta) "`)
	for text, want := range map[string]int{"alpha": 1, "beta": 1, "and": 1, "gamma": 0} {
		x.hold(t, text)
		if n, err := x.count(match); n != want || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if got := AnyOf(" -- !"); got != "" {
		t.Errorf("without a word: %q", got)
	}
	x.hold(t, "w63")
	if _, err := x.count(AnyOf(strings.Repeat("aB1 ", 2000))); err != nil {
		t.Error(err)
	}
}

func TestAdjacentTermsAreAlternativesWhereTheLanguageSaysSo(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	for _, c := range []struct {
		query, text string
		want        int
	}{
		{"red blue", "blue", 1}, {"red blue", "green", 0}, {"red blue NOT green", "blue green", 0},
		{"red blue AND green", "blue", 0}, {"red blue AND green", "red green", 1}, {`"red blue" green`, "blue red", 0},
	} {
		x.hold(t, c.text)
		match, err := Language{Parts: "parts", Wholes: "wholes", AnyOf: true}.Parse(c.query)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := x.count(match); n != c.want || err != nil {
			t.Errorf("%q over %q: %d, %v", c.query, c.text, n, err)
		}
	}
}

func FuzzSnippet(f *testing.F) {
	f.Add("deploy* getUser 日本", "we Deployed getUserById\x00 日本語 é\u0301", 50)
	f.Add("\"a", strings.Repeat("a ", 300), 20)
	f.Add("\xff*", "\xff\xfe", 4)
	f.Fuzz(func(t *testing.T, query, text string, limit int) {
		limit = 10 + max(limit, -limit)%300
		if limit < 10 {
			limit = 10
		}
		got := NewMarker(query).Snippet(limit, text, "other")
		if n := utf8.RuneCountInString(got) - 2*strings.Count(got, "**"); n > limit && !strings.Contains(text, "*") {
			t.Errorf("%d characters, want %d: %q", n, limit, got)
		}
		if !utf8.ValidString(got) {
			t.Errorf("not valid: %q", got)
		}
	})
}
