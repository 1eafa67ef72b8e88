package service

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"cairn/internal/mail"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
)

func (s *street) search(a messages.SearchArgs) string {
	s.Helper()
	a.ProjectKey = s.app
	out := mailtest.Must(s.SearchMessages(s.Context(), mail.Caller{}, a))(s)
	if out.Result == nil {
		s.Error("the result is null")
	}
	var found []string
	for _, h := range out.Result {
		found = append(found, mail.Decimal(h.ID))
	}
	return strings.Join(found, " ")
}

func TestASearchRanksFiltersAndFallsBack(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	first := s.sent(messages.SendArgs{Subject: "other", Body: "The build of internal/mail failed in Écluse, and much more is said here about it, at length"})
	s.sent(messages.SendArgs{Subject: "build", Body: "it runs", SenderName: "RedFox", Importance: "high", ThreadID: "T"})
	s.sent(messages.SendArgs{Subject: "x", Body: "foo.bar(baz) said \"hello world\"; 100%_sure C++", Importance: "urgent", AckRequired: true})
	last := s.sent(messages.SendArgs{Subject: "twin"})
	s.sent(messages.SendArgs{Subject: "twin"})
	other := s.mkdir(s.path("other"))
	s.register(other, "GreenLake")
	s.register(other, "BlueDog")
	s.sent(messages.SendArgs{ProjectKey: other, Subject: "build twin"})
	one, hundred := 1, 100
	for what, c := range map[string]struct {
		args messages.SearchArgs
		want string
	}{
		"a subject counts more":        {messages.SearchArgs{Query: "build"}, "2 1"},
		"the newest first":             {messages.SearchArgs{Query: "build", Ranking: "recency"}, "2 1"},
		"stems":                        {messages.SearchArgs{Query: "building fails"}, "1 2"},
		"stop words say nothing":       {messages.SearchArgs{Query: "what about the twin"}, "4 5"},
		"some words, behind all":       {messages.SearchArgs{Query: "does the twin build", Ranking: "recency"}, "5 4 2 1"},
		"a page of both tiers":         {messages.SearchArgs{Query: "failed build", Limit: &one, Offset: 1}, "2"},
		"operators have one tier":      {messages.SearchArgs{Query: "twin AND build"}, ""},
		"an expression has one tier":   {messages.SearchArgs{Query: "hello + twin"}, ""},
		"no accents":                   {messages.SearchArgs{Query: "ecluse"}, "1"},
		"a prefix":                     {messages.SearchArgs{Query: "bui*"}, "2 1"},
		"or":                           {messages.SearchArgs{Query: "failed OR twin"}, "1 4 5"},
		"not":                          {messages.SearchArgs{Query: "build NOT failed"}, "2"},
		"a phrase":                     {messages.SearchArgs{Query: `"hello world"`}, "3"},
		"a phrase that is none":        {messages.SearchArgs{Query: `"world hello"`}, ""},
		"a column":                     {messages.SearchArgs{Query: "subject:build"}, "2"},
		"equals by number":             {messages.SearchArgs{Query: "twin"}, "4 5"},
		"equals, newest":               {messages.SearchArgs{Query: "twin", Ranking: "recency"}, "5 4"},
		"a page":                       {messages.SearchArgs{Query: "twin", Limit: &one}, "4"},
		"the next page":                {messages.SearchArgs{Query: "twin", Limit: &one, Offset: 1}, "5"},
		"past the end":                 {messages.SearchArgs{Query: "twin", Limit: &hundred, Offset: 99}, ""},
		"no column":                    {messages.SearchArgs{Query: "mail/x:failed"}, ""},
		"a path, literally":            {messages.SearchArgs{Query: "internal/mail failed"}, "1"},
		"a call, literally":            {messages.SearchArgs{Query: "foo.bar(baz)"}, "3"},
		"an open quote, literally":     {messages.SearchArgs{Query: `"hello`}, "3"},
		"an operator, literally":       {messages.SearchArgs{Query: "AND"}, "1"}, // the word "and" is in a body
		"brackets of nothing":          {messages.SearchArgs{Query: "((("}, ""},
		"a part of a word":             {messages.SearchArgs{Query: "(ernal/MA"}, ""},
		"a part, as it stands":         {messages.SearchArgs{Query: "ternal/ma"}, "1"},
		"signs":                        {messages.SearchArgs{Query: "c++"}, "3"},
		"wildcards of LIKE are none":   {messages.SearchArgs{Query: "0%_su"}, "3"},
		"blank":                        {messages.SearchArgs{Query: " \n"}, ""},
		"of a sender":                  {messages.SearchArgs{Query: "build", Sender: "redfox"}, "2"},
		"of nobody":                    {messages.SearchArgs{Query: "build", Sender: "GoldHawk"}, ""},
		"important":                    {messages.SearchArgs{Query: "build OR hello", Importance: "high, urgent"}, "3 2"},
		"in a thread":                  {messages.SearchArgs{Query: "build", ThreadID: "T"}, "2"},
		"from":                         {messages.SearchArgs{Query: "twin", DateStart: last.Created.String()}, "4 5"},
		"to":                           {messages.SearchArgs{Query: "build", DateEnd: first.Created.String()}, "1"},
		"a day includes its last hour": {messages.SearchArgs{Query: "twin", DateEnd: last.Created.UTC().Format("2006-01-02")}, "4 5"},
		"a day before":                 {messages.SearchArgs{Query: "twin", DateEnd: last.Created.UTC().AddDate(0, 0, -1).Format("2006-01-02")}, ""},
	} {
		if got := s.search(c.args); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	mailtest.WantFields(t, "hit", mailtest.Must(s.SearchMessages(t.Context(), mail.Caller{}, messages.SearchArgs{ProjectKey: s.app, Query: "hello"}))(t).Result[0],
		"id", "subject", "importance", "ack_required", "created_ts", "thread_id", "from", "excerpt")
	hits := mailtest.Must(s.SearchMessages(t.Context(), mail.Caller{}, messages.SearchArgs{ProjectKey: s.app, Query: "failed build"}))(t).Result
	mailtest.Want(t, "tier 1", hits[0].Matched+hits[0].Excerpt, "The build of internal/mail failed in Écluse, and much more is said here about it, at length")
	mailtest.Want(t, "tier 2", hits[1].Matched+hits[1].Excerpt, messages.MatchedSome+"it runs")
	if text := mailtest.JSON(t, mailtest.Must(s.SearchMessages(t.Context(), mail.Caller{}, messages.SearchArgs{ProjectKey: s.app, Query: "hello"}))(t)); !strings.Contains(text, `"ack_required":1`) {
		t.Error(text)
	}
	zero := 0
	for what, a := range map[string]messages.SearchArgs{
		mail.CodeLimit: {Limit: &zero}, mail.CodeThreadID: {ThreadID: "a/b"}, mail.CodeTimestamp: {DateStart: "then"},
	} {
		a.ProjectKey, a.Query = s.app, "x"
		_, err := s.SearchMessages(t.Context(), mail.Caller{}, a)
		wantError(t, what, err, what)
	}
	for _, a := range []messages.SearchArgs{{Offset: -1}, {Ranking: "best"}, {Importance: "high,highest"}, {Query: "\x00"}, {Query: "\xff"}} {
		a.ProjectKey = s.app
		_, err := s.SearchMessages(t.Context(), mail.Caller{}, a)
		wantError(t, a.Query, err, mail.CodeInvalid)
	}
	_, err := s.SearchMessages(t.Context(), mail.Caller{}, messages.SearchArgs{ProjectKey: s.app, DateEnd: "then"})
	wantError(t, "the parameter's own name", err, mail.CodeTimestamp, "Invalid date_end format: 'then'.")
}

// rankedMatches is the maximum number of matches that a search ranks. A filter must still find
// rare messages among more matches than that.
const rankedMatches = 10_000

func TestASearchAmongManyFindsWhatIsRareInThem(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	p := s.sent(messages.SendArgs{Subject: "build", ThreadID: "rare"})
	s.fill(rankedMatches + 500)
	mailtest.Want(t, "in a thread", s.search(messages.SearchArgs{Query: "build", ThreadID: "rare"}), mail.Decimal(p.ID))
	mailtest.Want(t, "of a sender, newest", s.search(messages.SearchArgs{Query: "build", Sender: "GreenLake", Ranking: "recency"}), mail.Decimal(p.ID))
	hundred := 100
	other := s.mkdir(s.path("other"))
	s.register(other, "GreenLake")
	s.register(other, "BlueDog")
	q := s.sent(messages.SendArgs{ProjectKey: other, Subject: "build", Body: "build"})
	r := s.sent(messages.SendArgs{ProjectKey: other, Subject: "x", Body: "a build and much more is said about it, at length"})
	for ranking, ids := range map[string]string{"": mail.Decimal(q.ID) + " " + mail.Decimal(r.ID), "recency": mail.Decimal(r.ID) + " " + mail.Decimal(q.ID)} {
		out := mailtest.Must(s.SearchMessages(t.Context(), mail.Caller{}, messages.SearchArgs{ProjectKey: other, Query: "build", Ranking: ranking}))(t)
		mailtest.Want(t, "a small project beside a large one, "+ranking, fmt.Sprint(out.Result[0].ID, " ", out.Result[1].ID, " ", len(out.Result)), ids+" 2")
	}
	mailtest.Want(t, "a page", len(strings.Fields(s.search(messages.SearchArgs{Query: "build", Limit: &hundred}))), 100)
	far := rankedMatches + 501 - 3
	mailtest.Want(t, "the last page", len(strings.Fields(s.search(messages.SearchArgs{Query: "build", Offset: far}))), 3)
}

func FuzzAnyQueryIsSearched(f *testing.F) {
	s := newStreet(f, mail.Config{})
	s.sent(messages.SendArgs{Subject: "Build of a/b.go", Body: "it \"failed\" (again) NEAR the end*"})
	for _, seed := range []string{"build", "a/b.go", `"`, `""`, "NEAR(", "a AND", "^x", "x*", "*", "subject:", "-a", "{a b}:c", "((((a", "a\"b", "NOT", "\u2028", "a + b", "col:a:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := s.SearchMessages(t.Context(), mail.Caller{}, messages.SearchArgs{ProjectKey: s.app, Query: text})
		if bad := !utf8.ValidString(text) || strings.Contains(text, "\x00"); (err != nil) != bad {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && (out.Result == nil || strings.TrimSpace(text) == "" && len(out.Result) > 0) {
			t.Errorf("%q: %v", text, out)
		}
	})
}
