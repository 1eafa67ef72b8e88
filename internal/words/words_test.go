package words

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"cairn/internal/store/storetest"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// wordIndex is a full-text table like those of the store.
type wordIndex struct{ db *sql.DB }

// inMemory returns an empty database.
func inMemory(t testing.TB) *sql.DB {
	t.Helper()
	db := storetest.Memory()
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func newWordIndex(t testing.TB) wordIndex {
	t.Helper()
	db := inMemory(t)
	_, err := db.Exec(`CREATE VIRTUAL TABLE observations_fts USING fts5 (parts, wholes, content = '',
		contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2')`)
	if err != nil {
		t.Fatal(err)
	}
	return wordIndex{db}
}

// hold replaces the content of the index with text.
func (x wordIndex) hold(t rapid.TB, text string) {
	t.Helper()
	if _, err := x.db.Exec(`DELETE FROM observations_fts`); err != nil {
		t.Fatal(err)
	}
	parts, wholes := Index(text)
	if _, err := x.db.Exec(`INSERT INTO observations_fts (rowid, parts, wholes) VALUES (1, ?, ?)`, parts, wholes); err != nil {
		t.Fatal(err)
	}
}

// parse translates a query over the columns of a wordIndex.
func parse(query string) (string, error) {
	return Language{Parts: "parts", Wholes: "wholes"}.Parse(query)
}

func (x wordIndex) finds(t rapid.TB, query string) bool {
	t.Helper()
	match, err := parse(query)
	if err != nil {
		t.Fatalf("query %q: %v", query, err)
	}
	n, err := x.count(match)
	if err != nil {
		t.Fatalf("query %q became %s: %v", query, match, err)
	}
	return n > 0
}

func (x wordIndex) count(match string) (n int, err error) {
	err = x.db.QueryRow(`SELECT count(*) FROM observations_fts WHERE observations_fts MATCH ?`, match).Scan(&n)
	return n, err
}

func TestIndexTextSplitsIdentifiers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, parts, wholes string }{
		{"nothing", "", "", ""},
		{"no letter or digit", " -- () \t✓ \x00 \xff 🔥", "", ""},
		{"plain words", "Fix the login bug.", "Fix the login bug", ""},
		{"humps", "getUserById", "get User By Id", "getUserById"},
		{"capitals before a hump", "HTTPServer", "HTTP Server", "HTTPServer"},
		{"capitals after a hump", "parseURL", "parse URL", "parseURL"},
		{"all capitals", "README", "README", ""},
		{"leading capital", "Server", "Server", ""},
		{"one capital before a hump", "ATest", "A Test", "ATest"},
		{"plural of an acronym", "URLs", "URLs", ""},
		{"plural inside", "getIDsOf", "get IDs Of", "getIDsOf"},
		{"hump of two letters", "ABc ABsc", "A Bc A Bsc", "ABc ABsc"},
		{"s that begins a word", "HTTPserver", "HTT Pserver", "HTTPserver"},
		{"digits after letters", "utf8", "utf 8", "utf8"},
		{"digits before letters", "3D", "3 D", "3D"},
		{"digits inside", "k8sPod2x", "k 8 s Pod 2 x", "k8sPod2x"},
		{"mere punctuation", "snake_case kebab-case a.b/c::d", "snake case kebab case a b c d", ""},
		{"torn after punctuation", "my_getUser", "my get User", "my getUser"},
		{"hex and versions", "0x1F v1.2", "0 x 1 F v 1 2", "0x1F v1 2"},
		{"Greek and Cyrillic humps", "новыйФайл ΑΒΓδε", "новыи Фаил ΑΒ Γδε", "новыиФаил ΑΒΓδε"},
		{"script without case", "שלום עולם", "שלום עולם", ""},
		{"Han", "日本語", "日 本 語", ""},
		{"Kana with long marks", "データ ﾃﾞｰﾀ ひらがな", "デ ー タ ﾃ ﾞ ｰ ﾀ ひ ら が な", ""},
		{"long marks in a row", "えーーx", "え ー ー x", ""},
		{"voice marks in a row, repetition", "ﾞﾟx 〱〵", "ﾞ ﾟ x 〱 〵", ""},
		{"signs of Han and Kana", "⺀㋐", "", ""},
		{"Hangul", "한국어", "한 국 어", ""},
		{"Han next to Latin", "日本語text2", "日 本 語 text 2", "日 本 語 text2"},
		{"decomposed Hangul and Kana", norm.NFD.String("한글がき"), "한 글 が き", ""},
		{"decomposed accents", norm.NFD.String("ÉtéNoël"), "Ete Noel", "EteNoel"},
		{"accents of other scripts", "Ёлка λόγος أحمد", "Елка λογος احمد", ""},
		{"marks without a composed form", "q\u0303x\u0323y ש\u05b8ל 1\ufe0f\u20e3", "qxy של 1", ""},
		{"ornaments", "\ue0b0main\ue0a0", "main", ""},
	} {
		parts, wholes := Index(c.text)
		if parts != c.parts || wholes != c.wholes {
			t.Errorf("%s: Index(%q) =\n  %q, %q, want\n  %q, %q", c.name, c.text, parts, wholes, c.parts, c.wholes)
		}
	}
}

func TestWholesContainThreeNeighboursOnEitherSide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, wholes string }{
		{"a b c d aB e f g h i", "b c d aB e f g"},
		{"aB c d e f g h i aB", "aB c d e " + gap + " g h i aB"},
		{"aB c d e f g h aB", "aB c d e f g h aB"},
		{"aB c d e f g h i j k l m n", "aB c d e"},
		{"aB c aB d", "aB c aB d"},
		{"x y z w", ""},
	} {
		if _, wholes := Index(c.text); wholes != c.wholes {
			t.Errorf("Index(%q): wholes %q, want %q", c.text, wholes, c.wholes)
		}
	}
}

// checkIndexText checks what holds for every text: parts contains exactly its letters and
// digits in order, and wholes contains words of the text.
func checkIndexText(t rapid.TB, text string) {
	t.Helper()
	var bare []rune
	for _, r := range norm.NFD.String(strings.ToValidUTF8(text, "\uFFFD")) {
		if !unicode.Is(unicode.M, r) || r == 0x3099 || r == 0x309A {
			bare = append(bare, r)
		}
	}
	folded := norm.NFC.String(string(bare))
	word := func(r rune) bool { return unicode.In(r, unicode.L, unicode.N) }
	parts, wholes := Index(text)
	var want strings.Builder
	for _, r := range folded {
		if word(r) {
			want.WriteRune(r)
		}
	}
	if got := strings.ReplaceAll(parts, " ", ""); got != want.String() {
		t.Fatalf("%q: parts %q lost or added something, want the letters of %q", text, parts, want.String())
	}
	for token := range strings.SplitSeq(parts, " ") {
		if !strings.Contains(strings.ToLower(folded), strings.ToLower(token)) {
			t.Fatalf("%q: no %q in it", text, token)
		}
	}
	for token := range strings.FieldsSeq(wholes) {
		if token != gap && (strings.ContainsFunc(token, func(r rune) bool { return !word(r) }) || !strings.Contains(folded, token)) {
			t.Fatalf("%q: wholes has %q", text, token)
		}
	}
	if len(parts) > 2*len(folded) || len(wholes) > 2*len(folded) {
		t.Fatalf("%q: %d and %d bytes for %d", text, len(parts), len(wholes), len(folded))
	}
}

func FuzzIndexText(f *testing.F) {
	for _, s := range []string{
		"getUserById HTTPServer utf8 snake_case", "日本語text ー ﾞ 한글", "e\u0301 \u0301 q\u0303", "\xff\xc3\x28\x00", "ABs ABss aB1cD2",
		"İıſßẞ ǅǆ Ⅷⅷ x² ½", "\ue000 \U000f0000 \u200d", strings.Repeat("a1B", 400), strings.Repeat("\u0301", 100),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { checkIndexText(t, text) })
}

// anyText draws texts of developers' words, in several scripts.
func anyText() *rapid.Generator[string] {
	latin := rapid.StringMatching(`[A-Za-zé]{1,8}([A-Z][a-z]{0,5}|[0-9]{1,3}|_[a-z]{1,4}|-[A-Z]{1,3}){0,3}`)
	path := rapid.StringMatching(`(/[a-zA-Z0-9.]{1,6}){1,4}|[a-z]{2,5}::[A-Z][a-z]{1,5}\(\)|C:\\[a-z]{1,6}`)
	other := rapid.StringMatching(`[日本語検索データひらが한국어]{1,6}[a-z]{0,3}|[а-яА-Я]{1,7}|[ا-ي]{1,5}|[क-ह]{1,3}ि[क-ह]{1,3}|[Α-Ωα-ω]{1,6}`)
	word := rapid.OneOf(latin, latin, path, other)
	return rapid.Custom(func(t *rapid.T) string {
		words := append(rapid.SliceOfN(word, 0, 12).Draw(t, "words"), latin.Draw(t, "last"))
		var b strings.Builder
		for _, w := range words {
			b.WriteString(w + rapid.SampledFrom([]string{" ", ", ", "\n", " (", ") ", " = "}).Draw(t, "between"))
		}
		return b.String()
	})
}

func TestEveryWordOfATextFindsIt(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		x.hold(t, text)
		checkIndexText(t, text)
		var words []string
		for _, w := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == '(' || r == ')' }) {
			if len(Identifiers(w)) > 0 {
				words = append(words, w)
			}
		}
		word := rapid.SampledFrom(words).Draw(t, "word")
		queries := []string{
			word, norm.NFD.String(word), norm.NFC.String(word), `"` + word + `"`,
			word + " " + words[0], "(" + word + ")", word + " OR nowhere", words[0] + " NOT nowhere",
		}
		if len(Identifiers(word)) <= neighbours+1 {
			queries = append(queries, strings.ToLower(word), strings.ToUpper(word))
		}
		for _, query := range queries {
			if !x.finds(t, query) {
				match, err := parse(query)
				t.Fatalf("%q does not find %q: %s %v", query, text, match, err)
			}
		}
	})
}

func TestConsecutiveWordsFindTheirTextInAnyCase(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		x.hold(t, text)
		ids := Identifiers(text)
		start := rapid.IntRange(0, len(ids)-1).Draw(t, "start")
		end := rapid.IntRange(start+1, min(start+neighbours+1, len(ids))).Draw(t, "end")
		var row []string
		for _, id := range ids[start:end] {
			row = append(row, id.Whole)
		}
		phrase := strings.Join(row, " ")
		for _, query := range []string{`"` + phrase + `"`, strings.ToLower(`"` + phrase + `"`), strings.ToUpper(`"` + phrase + `"`)} {
			if !x.finds(t, query) {
				t.Fatalf("%s does not find %q", query, text)
			}
		}
	})
}

func TestEveryPartOfAnIdentifierFindsIt(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	rapid.Check(t, func(t *rapid.T) {
		text := anyText().Draw(t, "text")
		x.hold(t, text)
		parts, _ := Index(text)
		part := rapid.SampledFrom(strings.Fields(parts)).Draw(t, "part")
		if !x.finds(t, part) || !x.finds(t, strings.ToLower(part)) || !x.finds(t, part+"*") {
			t.Fatalf("%q does not find %q", part, text)
		}
	})
}

func TestAnySubstringOfARunOfHanKanaOrHangulFindsIt(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	rapid.Check(t, func(t *rapid.T) {
		run := []rune(rapid.StringMatching(`[一-鿿々〇ぁ-ゖァ-ヺーｦ-ﾟ가-힣]{1,12}`).Draw(t, "run"))
		start := rapid.IntRange(0, len(run)-1).Draw(t, "start")
		end := rapid.IntRange(start+1, len(run)).Draw(t, "end")
		x.hold(t, "log: "+string(run)+"ABC v2")
		if sub := string(run[start:end]); !x.finds(t, sub) || !x.finds(t, norm.NFD.String(sub)) || !x.finds(t, sub+"*") {
			t.Fatalf("%q does not find %q", sub, string(run))
		}
		if wrong := string(run) + "図鑑"; x.finds(t, wrong) {
			t.Fatalf("%q finds %q", wrong, string(run))
		}
	})
}

func TestEveryPrefixOfAWordFindsIt(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	const words = `authentication authenticated authorize authorization initialize initialized optimizer serialization
		configuration configured implementation documentation deployment deployed deploying payload payment keyboard keystore
		keyspace copyright playlist dependency dependencies performance availability available compatibility management
		environment connection connections validation validated generator generate generated universities university
		redistribution running stopped stopping mapping embedded embedding committed happiness useful meaningful dangerous
		mechanism national international internationalization operational sharedmemory ratingsystem general generically quickly simply activity executive transaction sessions
		queries querying caching cached testing tested tester string strings series status process access address
		analysis subsystem filesystem systematically occurrence difference referenced instances responsibility
		getUserAuthorization DeploymentController parseHTTPConnections utf8Validation`
	for word := range strings.FieldsSeq(words) {
		x.hold(t, "before "+word+" after")
		for n := 1; n <= len(word); n++ {
			for _, query := range []string{word[:n] + "*", strings.ToLower(word[:n]) + "*", `"before ` + word[:n] + `"*`} {
				if !x.finds(t, query) {
					t.Errorf("%s does not find %s", query, word)
				}
			}
		}
	}
}

func TestAPrefixDoesNotFindOtherWords(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	for _, c := range [][2]string{
		{"auth*", "aunt"}, {"pay*", "path package parse"}, {"key*", "kernel keep"}, {"logi*", "log logging"},
		{"ini*", "in"}, {"defi*", "def"}, {"form*", "for"}, {"uni*", "un"}, {"thi*", "the"}, {"getUserB*", "getUserAge"},
		{"authoriz*", "authenticate"}, {"日本*", "本日"},
	} {
		x.hold(t, c[1])
		if x.finds(t, c[0]) {
			t.Errorf("%s finds %q", c[0], c[1])
		}
	}
}

func BenchmarkIndexText(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"prose", "the refund test fails because the webhook arrives before the payment is stored. "},
		{"code", "func (s *Server) getUserById(ctx context.Context, id int64) (*User, error) { return s.httpClient.Get2(ctx, id) }\n"},
		{"Japanese", "検索エンジンのテストが失敗しました。"},
	} {
		text := strings.Repeat(c.text, 2048/len(c.text)+1)[:2048]
		b.Run(fmt.Sprintf("%s/2KB", c.name), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				Index(text)
			}
		})
	}
}
