package likely

import (
	"strings"
	"testing"

	"cairn/internal/store/storetest"
	"cairn/internal/words"
)

func FuzzWordsOfAPromptCanBeLookedUp(f *testing.F) {
	for _, s := range []string{
		"make the refund test pass", "why does getUserById2 fail in src/a_b.go:12?", "退款金额为什么不对 ﾃﾞｰﾀ", "\"\xff* NEAR(a, 3)", "e\u0301te\u0301 1234 12 ab",
		strings.Repeat("word", 500), strings.Repeat("aB1cD2 ", 99), "AND OR NOT \ue000\ue000\ue000",
	} {
		f.Add(s)
	}
	db := storetest.Memory()
	f.Cleanup(func() {
		if err := db.Close(); err != nil {
			f.Error(err)
		}
	})
	if _, err := db.Exec(`CREATE VIRTUAL TABLE observations_fts USING fts5 (parts, wholes)`); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		found := promptWords(prompt)
		if len(found) > maxLookedUp {
			t.Errorf("%d words", len(found))
		}
		for _, w := range found {
			var n int
			match := words.Phrase(w...)
			if err := db.QueryRow(`SELECT count(*) FROM observations_fts WHERE observations_fts MATCH ?`, match).Scan(&n); err != nil {
				t.Errorf("%q became %s: %v", prompt, match, err)
			}
		}
	})
}
