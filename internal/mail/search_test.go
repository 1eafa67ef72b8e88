package mail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func (s *street) search(a SearchArgs) string {
	s.Helper()
	a.ProjectKey = s.app
	out := must(s.SearchMessages(s.Context(), Caller{}, a))(s)
	if out.Result == nil {
		s.Error("the result is null")
	}
	var found []string
	for _, h := range out.Result {
		found = append(found, decimal(h.ID))
	}
	return strings.Join(found, " ")
}

func TestASearchRanksFiltersAndFallsBack(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	first := s.sent(SendArgs{Subject: "other", Body: "The build of internal/mail failed in Écluse, and much more is said here about it, at length"})
	s.sent(SendArgs{Subject: "build", Body: "it runs", SenderName: "RedFox", Importance: "high", ThreadID: "T"})
	s.sent(SendArgs{Subject: "x", Body: "foo.bar(baz) said \"hello world\"; 100%_sure C++", Importance: "urgent", AckRequired: true})
	last := s.sent(SendArgs{Subject: "twin"})
	s.sent(SendArgs{Subject: "twin"})
	other := s.mkdir(s.path("other"))
	s.register(other, "GreenLake")
	s.register(other, "BlueDog")
	s.sent(SendArgs{ProjectKey: other, Subject: "build twin"})
	one, hundred := 1, 100
	for what, c := range map[string]struct {
		args SearchArgs
		want string
	}{
		"a subject counts more":        {SearchArgs{Query: "build"}, "2 1"},
		"the newest first":             {SearchArgs{Query: "build", Ranking: "recency"}, "2 1"},
		"stems":                        {SearchArgs{Query: "building fails"}, "1 2"},
		"stop words say nothing":       {SearchArgs{Query: "what about the twin"}, "4 5"},
		"some words, behind all":       {SearchArgs{Query: "does the twin build", Ranking: "recency"}, "5 4 2 1"},
		"a page of both tiers":         {SearchArgs{Query: "failed build", Limit: &one, Offset: 1}, "2"},
		"operators have one tier":      {SearchArgs{Query: "twin AND build"}, ""},
		"an expression has one tier":   {SearchArgs{Query: "hello + twin"}, ""},
		"no accents":                   {SearchArgs{Query: "ecluse"}, "1"},
		"a prefix":                     {SearchArgs{Query: "bui*"}, "2 1"},
		"or":                           {SearchArgs{Query: "failed OR twin"}, "1 4 5"},
		"not":                          {SearchArgs{Query: "build NOT failed"}, "2"},
		"a phrase":                     {SearchArgs{Query: `"hello world"`}, "3"},
		"a phrase that is none":        {SearchArgs{Query: `"world hello"`}, ""},
		"a column":                     {SearchArgs{Query: "subject:build"}, "2"},
		"equals by number":             {SearchArgs{Query: "twin"}, "4 5"},
		"equals, newest":               {SearchArgs{Query: "twin", Ranking: "recency"}, "5 4"},
		"a page":                       {SearchArgs{Query: "twin", Limit: &one}, "4"},
		"the next page":                {SearchArgs{Query: "twin", Limit: &one, Offset: 1}, "5"},
		"past the end":                 {SearchArgs{Query: "twin", Limit: &hundred, Offset: 99}, ""},
		"no column":                    {SearchArgs{Query: "mail/x:failed"}, ""},
		"a path, literally":            {SearchArgs{Query: "internal/mail failed"}, "1"},
		"a call, literally":            {SearchArgs{Query: "foo.bar(baz)"}, "3"},
		"an open quote, literally":     {SearchArgs{Query: `"hello`}, "3"},
		"an operator, literally":       {SearchArgs{Query: "AND"}, "1"}, // "and" stands in a body
		"brackets of nothing":          {SearchArgs{Query: "((("}, ""},
		"a part of a word":             {SearchArgs{Query: "(ernal/MA"}, ""},
		"a part, as it stands":         {SearchArgs{Query: "ternal/ma"}, "1"},
		"signs":                        {SearchArgs{Query: "c++"}, "3"},
		"wildcards of LIKE are none":   {SearchArgs{Query: "0%_su"}, "3"},
		"blank":                        {SearchArgs{Query: " \n"}, ""},
		"of a sender":                  {SearchArgs{Query: "build", Sender: "redfox"}, "2"},
		"of nobody":                    {SearchArgs{Query: "build", Sender: "GoldHawk"}, ""},
		"important":                    {SearchArgs{Query: "build OR hello", Importance: "high, urgent"}, "3 2"},
		"in a thread":                  {SearchArgs{Query: "build", ThreadID: "T"}, "2"},
		"from":                         {SearchArgs{Query: "twin", DateStart: last.Created.String()}, "4 5"},
		"to":                           {SearchArgs{Query: "build", DateEnd: first.Created.String()}, "1"},
		"a day includes its last hour": {SearchArgs{Query: "twin", DateEnd: last.Created.UTC().Format("2006-01-02")}, "4 5"},
		"a day before":                 {SearchArgs{Query: "twin", DateEnd: last.Created.UTC().AddDate(0, 0, -1).Format("2006-01-02")}, ""},
	} {
		if got := s.search(c.args); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
	wantFields(t, "hit", must(s.SearchMessages(t.Context(), Caller{}, SearchArgs{ProjectKey: s.app, Query: "hello"}))(t).Result[0],
		"id", "subject", "importance", "ack_required", "created_ts", "thread_id", "from", "excerpt")
	hits := must(s.SearchMessages(t.Context(), Caller{}, SearchArgs{ProjectKey: s.app, Query: "failed build"}))(t).Result
	want(t, "tier 1", hits[0].Matched+hits[0].Excerpt, "The build of internal/mail failed in Écluse, and much more is said here about it, at length")
	want(t, "tier 2", hits[1].Matched+hits[1].Excerpt, MatchedSome+"it runs")
	if text := jsonText(t, must(s.SearchMessages(t.Context(), Caller{}, SearchArgs{ProjectKey: s.app, Query: "hello"}))(t)); !strings.Contains(text, `"ack_required":1`) {
		t.Error(text)
	}
	zero := 0
	for what, a := range map[string]SearchArgs{
		CodeLimit: {Limit: &zero}, CodeThreadID: {ThreadID: "a/b"}, CodeTimestamp: {DateStart: "then"},
	} {
		a.ProjectKey, a.Query = s.app, "x"
		_, err := s.SearchMessages(t.Context(), Caller{}, a)
		wantError(t, what, err, what)
	}
	for _, a := range []SearchArgs{{Offset: -1}, {Ranking: "best"}, {Importance: "high,highest"}, {Query: "\x00"}, {Query: "\xff"}} {
		a.ProjectKey = s.app
		_, err := s.SearchMessages(t.Context(), Caller{}, a)
		wantError(t, a.Query, err, CodeInvalid)
	}
	_, err := s.SearchMessages(t.Context(), Caller{}, SearchArgs{ProjectKey: s.app, DateEnd: "then"})
	wantError(t, "the parameter's own name", err, CodeTimestamp, "Invalid date_end format: 'then'.")
}

// More matches than are ranked at once do not hide those that a filter asks for.
func TestASearchAmongManyFindsWhatIsRareInThem(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	p := s.sent(SendArgs{Subject: "build", ThreadID: "rare"})
	s.fill(rankedMatches + 500)
	want(t, "in a thread", s.search(SearchArgs{Query: "build", ThreadID: "rare"}), decimal(p.ID))
	want(t, "of a sender, newest", s.search(SearchArgs{Query: "build", Sender: "GreenLake", Ranking: "recency"}), decimal(p.ID))
	hundred := 100
	other := s.mkdir(s.path("other"))
	s.register(other, "GreenLake")
	s.register(other, "BlueDog")
	q := s.sent(SendArgs{ProjectKey: other, Subject: "build", Body: "build"})
	r := s.sent(SendArgs{ProjectKey: other, Subject: "x", Body: "a build and much more is said about it, at length"})
	for ranking, ids := range map[string]string{"": decimal(q.ID) + " " + decimal(r.ID), "recency": decimal(r.ID) + " " + decimal(q.ID)} {
		out := must(s.SearchMessages(t.Context(), Caller{}, SearchArgs{ProjectKey: other, Query: "build", Ranking: ranking}))(t)
		want(t, "a small project beside a large one, "+ranking, fmt.Sprint(out.Result[0].ID, " ", out.Result[1].ID, " ", len(out.Result)), ids+" 2")
	}
	want(t, "a page", len(strings.Fields(s.search(SearchArgs{Query: "build", Limit: &hundred}))), 100)
	far := rankedMatches + 501 - 3
	want(t, "the last page", len(strings.Fields(s.search(SearchArgs{Query: "build", Offset: far}))), 3)
}

// However many messages come into question, their order is that of all matches.
func TestASearchRanksAmongFewAsAmongAll(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.fill(rankedMatches + 500)
	thousand := 1000
	for what, a := range map[string]SearchArgs{
		"a thread": {ThreadID: "big"}, "a sender": {Sender: "Bulk7"}, "a thread and a sender": {ThreadID: "big", Sender: "Bulk10", Importance: "normal"},
	} {
		for _, a.Ranking = range []string{"relevance", "recency"} {
			for _, a.Query = range []string{"deploy release", "build OR word7"} {
				a.ProjectKey, a.Limit = s.app, &thousand
				q, err := a.query()
				if err != nil {
					t.Fatal(err)
				}
				err = s.readIn(t.Context(), Caller{}, s.app, func(ctx context.Context, in *callTx) error {
					if a.Sender != "" {
						from, err := agentByName(ctx, in.tx, in.p.ID, a.Sender)
						if err != nil {
							return err
						}
						q.sender = from.ID
					}
					got, err := in.matching(ctx, q, q.text)
					if err != nil {
						return err
					}
					all, err := in.tx.Keys(ctx, q.ordered(selectRelevant, selectRecent), q.filter(in, q.text, rankedMatches, q.n)...)
					if len(all) == 0 || !slices.Equal(got, all) {
						t.Errorf("%s, %s: %d and %d of all, or another order", what, a.Ranking, len(got), len(all))
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func FuzzAnyQueryIsSearched(f *testing.F) {
	s := newStreet(f, Config{})
	s.sent(SendArgs{Subject: "Build of a/b.go", Body: "it \"failed\" (again) NEAR the end*"})
	for _, seed := range []string{"build", "a/b.go", `"`, `""`, "NEAR(", "a AND", "^x", "x*", "*", "subject:", "-a", "{a b}:c", "((((a", "a\"b", "NOT", "\u2028", "a + b", "col:a:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := s.SearchMessages(t.Context(), Caller{}, SearchArgs{ProjectKey: s.app, Query: text})
		if bad := !utf8.ValidString(text) || strings.Contains(text, "\x00"); (err != nil) != bad {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && (out.Result == nil || strings.TrimSpace(text) == "" && len(out.Result) > 0) {
			t.Errorf("%q: %v", text, out)
		}
	})
}
