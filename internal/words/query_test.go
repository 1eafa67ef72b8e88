package words

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cairn/internal/fault"
)

func TestQueryLanguage(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	for _, c := range []struct {
		name  string
		query string
		finds []string
		not   []string
	}{
		{"word", "server", []string{"the server", "SERVER", "HTTPServer", "my_server.go"}, []string{"serve", "observer"}},
		{"case", "CONFIG", []string{"config", "Config"}, nil},
		{"accents", "resume", []string{"résumé", "re\u0301sume\u0301", "RÉSUMÉ"}, nil},
		{"accents in the query", "Zürich", []string{"zurich", "Zu\u0308rich"}, []string{"zrich"}},
		{"accents of other scripts", "λόγος ёлка", []string{"λογος елка", "ΛΟΓΟΣ ЁЛКА", "λο\u0301γος е\u0308лка"}, nil},
		{"voice marks are no accents", "か", []string{"かな"}, []string{"がな"}},
		{"English stems", "running tests", []string{"run the test"}, []string{"runtime test"}},

		{"identifier by itself", "getUserById", []string{"getUserById", "x.getUserById()", "get_user_by_id", "getuserbyid", "GETUSERBYID"}, []string{"getUserByName", "id by user get"}},
		{"identifier by a part", "user", []string{"getUserById"}, nil},
		{"identifier by a phrase of parts", `"user by id"`, []string{"getUserById"}, []string{"getUserWithId"}},
		{"identifier in small letters", "getuserbyid", []string{"getUserById", "GetUserByID"}, []string{"get user by name"}},
		{"identifier by a prefix", "getuserb*", []string{"getUserById"}, []string{"getUserAge"}},
		{"identifier by a prefix with humps", "getUserB*", []string{"getUserById", "get_user_by_id", "getuserbyid"}, []string{"getUserAge"}},
		{"acronyms", "HTTPServer", []string{"http server", "httpServer", "httpserver"}, []string{"server http"}},
		{"digits", "utf8", []string{"UTF-8", "utf8", "utf 8"}, []string{"utf16"}},
		{"plural of an acronym", `"user ids"`, []string{"user IDs", "user ID"}, nil},
		{"names with humps in a phrase", `"github actions"`, []string{"GitHub Actions", "in github actions:"}, []string{"GitHub has actions"}},
		{"humps in a phrase, none in the text", `"GitHub Actions"`, []string{"github actions"}, []string{"actions of github"}},
		{"no phrase over a gap", `"aB xY"`, []string{"aB xY"}, []string{"aB c d e f g h i xY", "aB c xY"}},

		{"hyphen", "foo-bar", []string{"foo-bar", "foo bar", "foo_bar"}, []string{"bar foo", "foo x bar"}},
		{"colons", "a::b", []string{"a::b", "a b"}, []string{"b a"}},
		{"path", "path/x.rs", []string{"/src/path/x.rs"}, []string{"path/y.rs", "x.rs in path"}},
		{"path in another case", "SRC/httpserver.go", []string{"src/HTTPServer.go"}, nil},
		{"drive", `C:\x`, []string{`dir C:\x\y`}, []string{`D:\x`}},
		{"no column syntax", "parts:user", []string{"parts: user"}, []string{"user"}},
		{"no column filter", "{parts} : user", []string{"user parts"}, []string{"user"}},
		{"no start marker", "^user", []string{"the user"}, nil},
		{"apostrophe", "don't", []string{"don't", "I don’t"}, []string{"don and t"}},
		{"call", "main()", []string{"main()", "main"}, nil},
		{"call with an argument", "f(x)", []string{"f(x)", "f x"}, []string{"x f"}},
		{"call with a space inside", "foo(bar baz)", []string{"foo(bar, baz)", "baz foo bar"}, []string{"foo(bar)"}},
		{"stray closing parenthesis", "foo) bar", []string{"bar foo"}, nil},
		{"smiley", "sad :( or :)", []string{"or sad"}, nil},

		{"Han by any substring", "本語", []string{"日本語"}, []string{"日本の語"}},
		{"one character", "語", []string{"日本語"}, nil},
		{"Han and Latin", "日本語text", []string{"日本語text", "日本語 text"}, []string{"text日本語"}},
		{"Hangul", "국어", []string{"한국어"}, []string{"어국"}},

		{"adjacent terms", "fix login", []string{"login fix"}, []string{"fix", "login"}},
		{"AND", "fix AND login", []string{"login fix"}, []string{"fix"}},
		{"OR", "fix OR login", []string{"fix", "login"}, []string{"bug"}},
		{"NOT", "fix NOT login", []string{"fix bug"}, []string{"fix login"}},
		{"AND NOT", "fix AND NOT login", []string{"fix bug"}, []string{"fix login", "login not"}},
		{"small letters do not operate", "fix or login", []string{"fix or login"}, []string{"fix"}},
		{"AND before OR", "a OR b AND c", []string{"a", "b c"}, []string{"b", "c"}},
		{"NOT before AND", "a AND b NOT c", []string{"a b"}, []string{"a b c"}},
		{"NOT before OR", "a OR b NOT c", []string{"a c", "b"}, []string{"b c"}},
		{"adjacent before NOT", "a NOT b c", []string{"a b", "a c", "a"}, []string{"a b c"}},
		{"adjacent before OR", "a b OR c d", []string{"a b", "d c"}, []string{"b c"}},
		{"NOT from left to right", "a NOT b NOT c", []string{"a"}, []string{"a b", "a c"}},
		{"group", "(a OR b) c", []string{"a c", "b c"}, []string{"a b", "c"}},
		{"group last", "c (a OR b)", []string{"a c"}, []string{"c"}},
		{"two groups", "(a OR b) (c OR d)", []string{"b c"}, []string{"a b", "c d"}},
		{"NOT a group", "a NOT (b OR c)", []string{"a d"}, []string{"a b", "a c"}},
		{"operator against a group", "a AND(b OR c)", []string{"a c"}, []string{"a"}},
		{"operator against a phrase", `a AND"b c"`, []string{"b c a"}, []string{"a b"}},
		{"group against a phrase", `"a b"(c OR d)`, []string{"d a b"}, []string{"a b"}},
		{"word against a phrase", `a"b c"`, []string{"b c a"}, []string{"a b"}},
		{"calls in a group", "x AND (main() OR f(y z))", []string{"x main", "z f y x"}, []string{"main", "x f y"}},
		{"group of one call", "(main())", []string{"main"}, nil},
		{"needless groups", "((((a)) ((b))))", []string{"b a"}, []string{"a"}},
		{"empty group", "() a (()) ", []string{"a"}, nil},

		{"AND alone", "AND", []string{"and"}, []string{"a"}},
		{"AND first", "AND a", []string{"a and b"}, []string{"a"}},
		{"AND last", "a AND", []string{"a and b"}, []string{"a"}},
		{"NOT first", "NOT a", []string{"do not a"}, []string{"a", "b"}},
		{"NOT before a group first", "NOT (a OR b)", []string{"not b"}, []string{"b", "c"}},
		{"NOT first in a group", "a AND (NOT b)", []string{"a not b"}, []string{"a"}},
		{"OR twice", "OR OR", []string{"either or"}, []string{"a"}},
		{"two operators in a row", "a OR AND b", []string{"a", "and b"}, []string{"b"}},
		{"AND NOT last", "a AND NOT", []string{"a not"}, []string{"a"}},
		{"last in a group", "(a OR) b", []string{"a or b"}, []string{"a b"}},
		{"operand without a letter", "a OR --", []string{"a or b"}, []string{"a"}},
		{"operator between terms that stay", "a AND -- b", []string{"a b"}, []string{"a"}},
		{"operator in quotes", `"OR"`, []string{"or"}, []string{"a"}},
		{"operator with a comma", "a OR, b", []string{"a or b"}, []string{"a b"}},

		{"phrase", `"fix the login"`, []string{"Fix the login!"}, []string{"the login fix"}},
		{"phrase with operators", `"a AND (b"`, []string{"a and b"}, []string{"a b"}},
		{"doubled quote", `"say ""hi"" now"`, []string{`say "hi" now`}, []string{"say now"}},
		{"empty phrases", `"" a "--"`, []string{"a"}, nil},

		{"prefix", "log*", []string{"login", "logs", "log"}, []string{"blog"}},
		{"prefix inside an ending", "usin*", []string{"using it"}, []string{"usage"}},
		{"prefix with more stars", "log**", []string{"login"}, nil},
		{"prefix of a phrase", `"fix the log"*`, []string{"fix the login"}, []string{"fix login"}},
		{"prefix of a phrase, star apart", `"fix the log" * now`, []string{"now fix the login"}, []string{"fix the login"}},
		{"prefix of a phrase, star apart in a group", `("fix the log" *) now`, []string{"now fix the login"}, nil},
		{"prefix of a phrase, then a word", `"fix the log"*now`, []string{"now fix the login"}, []string{"fix the login"}},
		{"prefix that ends in a mark", "re\u0301*", []string{"résumé"}, nil},
		{"unknown byte last", "log\xff", []string{"log"}, []string{"login"}},
		{"prefix of several parts", "foo-ba*", []string{"foo-bar"}, []string{"foo-car"}},
		{"prefix in a group", "(log* OR x)", []string{"login"}, nil},
		{"star alone", "login *", []string{"login"}, nil},
		{"star inside", "fo*ba", []string{"fo ba"}, []string{"fo bar", "foba"}},
		{"star first", "*.rs", []string{"a.rs"}, []string{"arsenal"}},
		{"star after punctuation", "src/*", []string{"src/a"}, []string{"srcfile"}},
		{"star of a word after a phrase", `"a b" *.go`, []string{"a b c.go"}, []string{"a bc"}},

		{"NEAR", "NEAR(a b, 2)", []string{"a x b", "b x x a"}, []string{"a x x x b", "a"}},
		{"NEAR at ten", "NEAR(a b)", []string{"a 1 2 3 4 5 6 7 8 9 10 b"}, []string{"a 1 2 3 4 5 6 7 8 9 10 11 b"}},
		{"NEAR phrases and prefixes", `NEAR("a b" lo* main(), 3)`, []string{"a b x login main"}, []string{"b a login main"}},
		{"NEAR with commas", "NEAR(a, b , 2)", []string{"a x b"}, []string{"a x x x b"}},
		{"NEAR and others", "c NEAR(a b, 1) OR d", []string{"a b c", "d"}, []string{"a b"}},
		{"NEAR with humps", "NEAR(github flow, 2)", []string{"GitHub flow", "github x flow"}, []string{"GitHub x x x flow"}},
		{"NEAR with humps in the query", "NEAR(GitHub flow, 2)", []string{"GitHub flow", "github x flow"}, []string{"git flow hub"}},
		{"NEAR of one", "NEAR(a, 3)", []string{"a"}, []string{"near"}},
		{"NEAR of nothing", "NEAR(--, 3)", []string{"near"}, []string{"a"}},
		{"NEAR with a huge distance", "NEAR(a b, 99999999999999999999)", []string{"a x b"}, nil},
		{"NEAR with a distance beyond 32 bits", "NEAR(a b, 4294967297)", []string{"a x x x b"}, nil},
		{"NEAR without a distance", "NEAR(a b, c)", []string{"a b c"}, []string{"a b"}},
		{"NEAR alone", "NEAR", []string{"near"}, nil},
		{"NEAR apart from its parenthesis", "NEAR (a OR b)", []string{"near a"}, []string{"a"}},
		{"near in small letters", "near(a b)", []string{"near a b"}, []string{"a b"}},
		{"operators inside NEAR", "NEAR(a OR b)", []string{"a or b"}, []string{"a b"}},
	} {
		for _, text := range c.finds {
			if x.hold(t, text); !x.finds(t, c.query) {
				match, err := parse(c.query)
				t.Errorf("%s: %q does not find %q: %s %v", c.name, c.query, text, match, err)
			}
		}
		for _, text := range c.not {
			if x.hold(t, text); x.finds(t, c.query) {
				match, err := parse(c.query)
				t.Errorf("%s: %q finds %q: %s %v", c.name, c.query, text, match, err)
			}
		}
	}
}

func TestQueriesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, query, message string }{
		{"empty", "", "query must not be empty"},
		{"blank", " \t\n\u3000", "query must not be empty"},
		{"punctuation", `-- :) * "" ()`, "query has no searchable term"},
		{"unknown bytes", "\xff\x00", "query has no searchable term"},
		{"open quote", `a "b c`, "query has an unbalanced quote"},
		{"open quote after a word", `5" disk`, "query has an unbalanced quote"},
		{"open quote by an escape", `"a ""`, "query has an unbalanced quote"},
		{"open quote in NEAR", `NEAR(a "b)`, "query has an unbalanced quote"},
		{"open quote before a group", `"a (b`, "query has an unbalanced quote"},
		{"open group", "(a OR b", "query has an unbalanced parenthesis"},
		{"open group after words", "f (x", "query has an unbalanced parenthesis"},
		{"open NEAR", "NEAR(a b", "query has an unbalanced parenthesis"},
		{"open call in a group", "(f(x)", "query has an unbalanced parenthesis"},
		{"open group around nothing", "(-", "query has an unbalanced parenthesis"},
		{"1,001 characters", strings.Repeat("é", 1001), "query must not exceed 1000 characters"},
		{"65 terms", strings.Repeat("a ", 65), "query must not exceed 64 terms"},
		{"65 terms with operators", strings.Repeat("a OR ", 64) + "a", "query must not exceed 64 terms"},
		{"65 terms with an operator as a word", strings.Repeat("a ", 64) + "AND", "query must not exceed 64 terms"},
		{"65 terms with NEAR", strings.Repeat("a ", 63) + "NEAR(a b)", "query must not exceed 64 terms"},
		{"NOTs inside NOTs", strings.Repeat("a NOT (", 50) + "a" + strings.Repeat(")", 50), "query is nested too deeply"},
	} {
		match, err := parse(c.query)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Code != "invalid_query" || f.Message != c.message || match != "" {
			t.Errorf("%s: Parse = %q, %v, want %q", c.name, match, err, c.message)
		}
	}
}

func TestQueriesAtTheLimitsAreAccepted(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	x.hold(t, "a b")
	nest := func(head, tail string, n int) string { return strings.Repeat(head, n) + "a" + strings.Repeat(tail, n) }
	for _, c := range []struct{ name, query string }{
		{"1,000 characters", " " + strings.Repeat("é", 999)},
		{"1,000 characters in one phrase", strings.Repeat("a-", 499) + "a*"},
		{"64 terms", strings.TrimSpace(strings.Repeat("a ", 64))},
		{"64 terms with OR", strings.Repeat("a OR ", 63) + "a"},
		{"64 terms with NOT", strings.Repeat("a NOT ", 63) + "a"},
		{"64 terms and what does not count", strings.Repeat("a - ", 64)},
		{"64 identifiers as prefixes", strings.Repeat("aBi* ", 64)},
		{"64 terms in NEAR", "NEAR(" + strings.Repeat("a ", 64) + ")"},
		{"490 groups", nest("(", ")", 490)},
		{"490 groups that are empty", "a" + strings.Repeat("(", 490) + strings.Repeat(")", 490)},
		{"alternating groups to the right", nest("a AND (b OR (", "))", 31)},
		{"alternating groups to the left", nest("((", " OR b) AND a)", 31)},
		{"groups of prefixes", nest("as* (ba* OR (", "))", 31)},
		{"NOT to the left", nest("(", " NOT b)", 63)},
		{"15 NOTs inside each other", nest("a AND (b OR c NOT (", "))", 15)},
		{"15 NOTs with NEAR", strings.Replace(nest("a OR (b AND c NOT (", "))", 15), "a)", "NEAR(aB a, 3) i*)", 1)},
	} {
		match, err := parse(c.query)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if _, err := x.count(match); err != nil {
			t.Errorf("%s: %v from %s", c.name, err, match)
		}
	}
}

func TestEveryDepthOfNestingIsExecutedOrRefused(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	x.hold(t, "a b")
	for _, c := range []struct{ head, tail string }{
		{"a NOT (", ")"}, {"a OR (b NOT (", "))"}, {"(a NOT (", ") OR b)"}, {"a AND (b OR (c NOT (", ")))"}, {"a b OR c d NOT (", ")"},
	} {
		accepted := 0
		for n := range 64 {
			for _, middle := range []string{"a", "aB*", "NEAR(aB b*)"} {
				query := strings.Repeat(c.head, n) + middle + strings.Repeat(c.tail, n)
				match, err := parse(query)
				if err != nil {
					continue
				}
				accepted = n
				if _, err := x.count(match); err != nil {
					t.Errorf("%s: %v", query, err)
				}
			}
		}
		if accepted < 15 {
			t.Errorf("%s…%s is refused %d deep", c.head, c.tail, accepted+1)
		}
	}
}

func TestMatchExpressions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, match string }{
		{"server", `"server"`},
		{"getUserById", `"get User By Id" OR "getUserById"`},
		{"src/auth/mod.rs", `"src auth mod rs"`},
		{"a b OR c", `("a" AND "b") OR "c"`},
		{"a OR (b OR (c d))", `(("c" AND "d") OR "b") OR "a"`},
		{"a NOT (b NOT c)", `"a" NOT ("b" NOT "c")`},
		{"log*", `"log" *`},
		{"pay*", `"pay" * OR "paye" *`},
		{"authoriz*", `"authoriz" * OR "authorize"`},
		{`"fix the map"*`, `"fix the map" *`},
		{"NEAR(a b*, 5)", `parts : NEAR("a" "b" * , 5) OR wholes : NEAR("a" "b" * , 3)`},
		{`"; DROP TABLE x; --"`, `"DROP TABLE x"`},
	} {
		if match, err := parse(c.query); match != c.match || err != nil {
			t.Errorf("parse(%q) = %s, %v, want %s", c.query, match, err, c.match)
		}
	}
}

// boolean is a query of which the meaning is known without reading it.
type boolean struct {
	query string
	holds func(text string) bool
}

func booleans(depth int) *rapid.Generator[boolean] {
	return rapid.Custom(func(t *rapid.T) boolean {
		if depth == 0 || rapid.IntRange(0, 3).Draw(t, "leaf") == 0 {
			w := rapid.SampledFrom([]string{"ax", "bx", "cx", "dx"}).Draw(t, "word")
			return boolean{w, func(text string) bool { return strings.Contains(text, w) }}
		}
		l, r := booleans(depth-1).Draw(t, "left"), booleans(depth-1).Draw(t, "right")
		switch op := rapid.SampledFrom([]string{" AND ", " ", " OR ", " NOT ", " AND NOT "}).Draw(t, "operator"); op {
		case " OR ":
			return boolean{"(" + l.query + op + r.query + ")", func(s string) bool { return l.holds(s) || r.holds(s) }}
		case " NOT ", " AND NOT ":
			return boolean{"(" + l.query + op + r.query + ")", func(s string) bool { return l.holds(s) && !r.holds(s) }}
		default:
			return boolean{"(" + l.query + op + r.query + ")", func(s string) bool { return l.holds(s) && r.holds(s) }}
		}
	})
}

func TestGroupedQueriesMeanWhatTheySay(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	rapid.Check(t, func(t *rapid.T) {
		b := booleans(4).Draw(t, "query")
		text := strings.Join(rapid.SliceOfDistinct(rapid.SampledFrom([]string{"ax", "bx", "cx", "dx", "ex"}), rapid.ID).Draw(t, "text"), " ")
		if x.hold(t, text); x.finds(t, b.query) != b.holds(text) {
			t.Fatalf("%s on %q: want %v", b.query, text, b.holds(text))
		}
	})
}

func TestDeepQueriesAreExecutedOrRefused(t *testing.T) {
	t.Parallel()
	x := newWordIndex(t)
	x.hold(t, "ax bx")
	rapid.Check(t, func(t *rapid.T) {
		query := "ax"
		for range rapid.IntRange(0, 63).Draw(t, "depth") {
			term := rapid.SampledFrom([]string{"ax", "aB", "pay*", "NEAR(ax b*)", `"ax bx"*`}).Draw(t, "term")
			op := rapid.SampledFrom([]string{" AND ", " ", " OR ", " NOT "}).Draw(t, "operator")
			query = rapid.SampledFrom([]string{"(" + query + ")" + op + term, term + op + "(" + query + ")"}).Draw(t, "side")
		}
		match, err := parse(query)
		if err != nil {
			if m := err.Error(); m != "query is nested too deeply" && m != "query must not exceed 64 terms" && m != "query must not exceed 1000 characters" {
				t.Fatal(m)
			}
			return
		}
		if _, err := x.count(match); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	})
}

func FuzzParseQuery(f *testing.F) {
	for _, s := range []string{
		`fix login`, `"a ""b"" c"* OR (d NOT e)`, `NEAR(a "b c"* main(), 3)`, `x AND(main() OR f(y z)) AND NOT`, `NEAR(`, `((((`, `))))`,
		`getUserB* 日本語text ﾃﾞｰﾀ`, `C:\x k:v don't a::b parts:x ^y {z}`, "\xff\x00\"", `AND OR NOT`, `"a" *b`, `authoriz* deploy* mapp*`,
		strings.Repeat("a OR (b NOT (", 20) + "c" + strings.Repeat("))", 20), strings.Repeat("aB1 ", 64), "e\u0301*\u0301 \ue000",
	} {
		f.Add(s)
	}
	x := newWordIndex(f)
	x.hold(f, "fix login a b c main getUserById 日本語")
	f.Fuzz(func(t *testing.T, query string) {
		match, err := parse(query)
		again, errAgain := parse(query)
		if match != again || (err == nil) != (errAgain == nil) {
			t.Fatalf("%q: %s %v, then %s %v", query, match, err, again, errAgain)
		}
		if err != nil {
			if f := fault.As(err); f.Kind != fault.Invalid || f.Code != "invalid_query" || f.Error() != errAgain.Error() || match != "" {
				t.Fatalf("%q: %#v", query, err)
			}
			return
		}
		if _, err := x.count(match); err != nil {
			t.Fatalf("%q became %s: %v", query, match, err)
		}
	})
}

func BenchmarkParseQuery(b *testing.B) {
	for _, c := range []struct{ name, query string }{
		{"words", "refund webhook error"},
		{"path", "internal/observation/query_test.go"},
		{"operators", `(getUserById OR "user by id") AND authoriz* NOT NEAR(login test, 5)`},
		{"986 characters", strings.Repeat("authorizationBi* ", 58)},
		{"nested", strings.Repeat("(", 490) + "a" + strings.Repeat(")", 490)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(c.query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
