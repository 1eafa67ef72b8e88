package words_test

import (
	"slices"
	"testing"
	"time"

	"cairn/internal/words"
)

func TestQuestionsOmitStopWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Why did the refund fail?": {"refund", "fail"},
		"who did it?":              {"who", "did", "it"},
		"getUserById again":        {"getuserbyid", "user", "id"},
		"":                         nil,

		"where did help.go move":        {"help", "go", "move"},
		"what does --all do":            {"all"},
		"what does `show` print":        {"show", "print"},
		"does -h help":                  {"h", "help"},
		"explain the refund":            {"refund"},
		"can you explain the refund":    {"refund"},
		"Stop. Explain the refund.":     {"stop", "refund"},
		"what does explain do on a sea": {"explain", "sea"},
		"this and that. then those":     {"this", "and", "that", "then", "those"},
	} {
		var got []string
		for _, term := range words.Ask(text).Terms {
			got = append(got, term.Word)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if words.Key("платёжный") != words.Key("платёжного") {
		t.Error("two forms of a Russian word differ")
	}
}

func TestNeighboursFormPairsAsInIdentifiers(t *testing.T) {
	t.Parallel()
	var got []string
	for _, pair := range words.Ask("the auto commit of code owners, in the data base").Pairs {
		got = append(got, pair.Word)
	}
	if want := []string{"autocommit", "codeowners", "database"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAQuestionOfOnlyStopWordsIsEmpty(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"what happened": true, "": true, "what sank": false, "what of help.go": true, "getUser": false} {
		if got := words.Ask(text).IsEmpty(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestPeriodsAreRemovedFromQuestions(t *testing.T) {
	t.Parallel()
	now := time.Date(2024, 5, 15, 10, 0, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"what did we do yesterday about sails?": "what did we do about sails? 2024-05-14 2024-05-15",
		"two days ago":                          " 2024-05-13 2024-05-14",
		"the sails last week":                   "the sails 2024-05-06 2024-05-13",
		"the sails in March":                    "the sails 2024-03-01 2024-04-01",
		"we may march":                          "",
		"on Friday, May 3":                      " 2024-05-03 2024-05-04",
		"on Monday":                             " 2024-05-13 2024-05-14",
		"sails of the 3rd and 4th of June":      "sails 2023-06-03 2023-06-05",
		"sails at the end of April":             "sails 2024-04-21 2024-05-01",
		"the weekend of May 4":                  " 2024-05-04 2024-05-06",
		"sails since 2024-05-01":                "sails 2024-05-01 2024-05-16",
		"between May 1 and May 3, what sank":    ", what sank 2024-05-01 2024-05-04",
		"between May 1 and May 3 2022":          " 2022-05-01 2022-05-04",
		"from November 30 to January 2 2023":    " 2022-11-30 2023-01-03",
		"from May 3 to May 1":                   "to May 1 2024-05-03 2024-05-04",
		"go 1.24 fails 3 tests":                 "",
		"last weekend":                          " 2024-05-11 2024-05-13",
		"in the past three days":                " 2024-05-12 2024-05-16",
		"in the first week of May":              " 2024-05-01 2024-05-08",
	} {
		rest, p, ok := words.CutPeriod(text, now)
		got := ""
		if ok {
			got = rest + " " + p.From.Format(time.DateOnly) + " " + p.To.Format(time.DateOnly)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestExcerptsShowTheRarestWordsInOneLine(t *testing.T) {
	t.Parallel()
	f := words.NewFinder(map[string]float64{words.Key("rudder"): 5, words.Key("sails"): 1})
	text := "Sails, sails and more sails stand at the beginning.\nThen a lot of other text follows.\n\tThe rudder broke, and nobody saw it."
	got := f.Excerpt(text, 60)
	if len([]rune(got.Text)) > 60 || len(got.Marks) != 1 || got.Text[got.Marks[0][0]:got.Marks[0][1]] != "rudder" {
		t.Errorf("%+v", got)
	}
}

func TestEditsCountLettersAndSwaps(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]int{
		{"exhaust", "exhaust"}: 0, {"exhuast", "exhaust"}: 1, {"exhust", "exhaust"}: 1, {"cat", "dog"}: 3, {"a", "abcd"}: 3,
	} {
		if got := words.Edits(pair[0], pair[1], 2); got != want {
			t.Errorf("%v: %d, want %d", pair, got, want)
		}
	}
}
