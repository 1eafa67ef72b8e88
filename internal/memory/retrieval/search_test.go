package retrieval_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memories"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/ranking"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// found returns the texts that a search finds, best first.
func found(d *memorytest.Desk, a retrieval.SearchArgs) string {
	d.Helper()
	if a.MemoryID == "" {
		a.MemoryID = d.MemoryID
	}
	f, err := d.Search(d.Context(), memory.Caller{}, a)
	if err != nil {
		d.Fatal(err)
	}
	if f.Count != len(f.Entries) || f.Entries == nil {
		d.Errorf("count %d of %v", f.Count, f.Entries)
	}
	var out []string
	for _, h := range f.Entries {
		if h.Score < 0 || h.Score > 1 {
			d.Errorf("the score of %q is %v", h.RawEntry, h.Score)
		}
		out = append(out, h.RawEntry)
	}
	return strings.Join(out, "|")
}

// put adds an entry with all fields that searches use.
func put(d *memorytest.Desk, a contents.NewEntry) entries.Added {
	d.Helper()
	if a.MemoryID == "" {
		a.MemoryID = d.MemoryID
	}
	out, _, err := d.AddEntry(d.Context(), memory.Caller{}, a)
	if err != nil {
		d.Fatal(err)
	}
	return out
}

func TestACommittedEntryIsFoundAtOnceByRawAndSummary(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	memorytest.Want(t, "in an empty memory", found(d, retrieval.SearchArgs{Query: "deploy"}), "")
	added := put(d, contents.NewEntry{RawEntry: "the deployment goes through staging", Summary: "about releases"})
	for _, query := range []string{"deployments", "STAGING?", "release", "how does it go"} {
		memorytest.Want(t, query, found(d, retrieval.SearchArgs{Query: query}), "the deployment goes through staging")
	}
	f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "staging"}))(t)
	me := memorytest.Must(d.Whoami(t.Context(), memory.Caller{}))(t)
	h := f.Entries[0]
	score := h.Score
	h.Score = 0
	memorytest.Want(t, "the hit", h, retrieval.Hit{EntryID: added.EntryID, ActorID: me.UserID, MemoryID: d.MemoryID, Summary: "about releases", RawEntry: "the deployment goes through staging", CreationTime: added.CreationTime, Score: 0, SessionID: "", Excerpt: ""})
	memorytest.Want(t, "a score above nothing", score > 0.3, true)
	memorytest.Want(t, "mode", f.Mode, retrieval.ModeLexical)
	memorytest.Want(t, "coverage", memorytest.AsJSON(t, f.Coverage), `{"from":null,"complete":true}`)
	memorytest.Want(t, "no contexts", f.LatestContext+f.BestContext, "")
	memorytest.Want(t, "the keys", strings.Contains(memorytest.AsJSON(t, f), "Context"), false)
}

func TestALongEntryShowsWhereItMatched(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	put(d, contents.NewEntry{RawEntry: strings.Repeat("the sea is calm and wide. ", 20) + "The lighthouse stands on a rock. " + strings.Repeat("Gulls cry. ", 20)})
	h := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "lighthouse"}))(t).Entries[0]
	memorytest.Want(t, "one line around the word", strings.Contains(h.Excerpt, "lighthouse stands") && utf8.RuneCountInString(h.Excerpt) <= retrieval.MaxExcerpt, true)
}

func TestAnInflightEntryIsFoundOnceItIsCommittedAndNoEarlier(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t).Joined()
	d.Add("a needle")
	memorytest.Want(t, "inflight", found(d, retrieval.SearchArgs{Query: "needle"}), "")
	me := memorytest.Must(d.Whoami(t.Context(), memory.Caller{}))(t)
	if err := d.Leave(t.Context(), me.UserID, true); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "committed", found(d, retrieval.SearchArgs{Query: "needle"}), "a needle")
}

func TestASearchStaysInItsMemoryAndWithItsUser(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	d.Add("here is a needle")
	other := d.NewMemory(memory.Caller{}, d.VaultID, "other")
	put(d, contents.NewEntry{MemoryID: other, RawEntry: "there is a needle"})
	memorytest.Want(t, "this memory", found(d, retrieval.SearchArgs{Query: "needle"}), "here is a needle")
	memorytest.Want(t, "the other", found(d, retrieval.SearchArgs{MemoryID: other, Query: "needle"}), "there is a needle")
	stranger := memorytest.Must(d.AddUser(t.Context()))(t)
	_, err := d.Search(t.Context(), memory.Caller{User: stranger.UserID}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "needle"})
	memorytest.WantError(t, "a foreign memory", err, 404, memory.CodeNotFound)
	_, err = d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: rules.NewID(), Query: "needle"})
	memorytest.WantError(t, "no memory", err, 404, memory.CodeNotFound)
	memorytest.Want(t, "of none of the words", found(d, retrieval.SearchArgs{Query: "haystack"}), "")
}

func TestWhatOthersKeepBearsNotOnARanking(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	d.Add("red apples and green pears")
	d.Add("green apples")
	before := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "red apples"}))(t)
	other := d.NewMemory(memory.Caller{}, d.VaultID, "other")
	for range 20 {
		put(d, contents.NewEntry{MemoryID: other, RawEntry: "red red red"})
	}
	after := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "red apples"}))(t)
	memorytest.Want(t, "the answer", memorytest.AsJSON(t, after), memorytest.AsJSON(t, before))
}

func TestTheTextOfAQueryIsNeverSyntax(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	d.Add("alpha beta")
	d.Add("gamma")
	for query, hits := range map[string]string{
		`alpha AND gamma`: "gamma|alpha beta", `alpha NOT beta`: "alpha beta|gamma", `"alpha`: "alpha beta|gamma", `words:alpha`: "alpha beta|gamma",
		`NEAR(alpha gamma, 1)`: "gamma|alpha beta", `alph*`: "", `*`: "", `(((`: "", "😀": "", `' OR 1=1 --`: "", "^gamma": "gamma|alpha beta",
	} {
		memorytest.Want(t, query, found(d, retrieval.SearchArgs{Query: query, AsIs: true}), hits)
	}
}

func TestAQueryOfStopWordsKeepsThem(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	put(d, contents.NewEntry{RawEntry: "to be or not to be", SessionID: rules.NewID()})
	put(d, contents.NewEntry{RawEntry: "something else", SessionID: rules.NewID()})
	memorytest.Want(t, "stop words alone", found(d, retrieval.SearchArgs{Query: "who are you not"}), "to be or not to be")
	memorytest.Want(t, "beside others", found(d, retrieval.SearchArgs{Query: "are you not else"}), "something else")
}

func TestWordsAreFoundInOtherForms(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	d.Add("We bought two bikes for the children, says Zoë of 東京 in getUserById")
	for _, query := range []string{"buy", "bicycle", "child", "zoe", "ZOË", "京", "user", "getuserbyid", "get_user"} {
		memorytest.Want(t, query, found(d, retrieval.SearchArgs{Query: query}) != "", true)
	}
}

func TestWhoIsNamedAndSpeaksComesFirst(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	for _, name := range []string{"Ann", "Ben"} {
		put(d, contents.NewEntry{RawEntry: "my trip went well", Metadata: []byte(`{"speaker":"` + name + `"}`), SessionID: rules.NewID()})
	}
	put(d, contents.NewEntry{RawEntry: "my trip went well, too", Metadata: []byte(`{"speaker":7}`), SessionID: rules.NewID()})
	first := func(query string) string {
		f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: query}))(t)
		return metadataText(memorytest.Must(d.GetEntry(t.Context(), memory.Caller{}, d.MemoryID, f.Entries[0].EntryID))(t))
	}
	memorytest.Want(t, "ben", first("how was ben's trip"), `{"speaker":"Ben"}`)
	memorytest.Want(t, "ann", first("how was Ann's trip"), `{"speaker":"Ann"}`)
}

func metadataText(e contents.Entry) string { return string(e.Metadata) }

func TestAQuestionOfTimeFindsATextThatNamesOne(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	for _, text := range []string{"the concert was loud", "the concert was yesterday", "was the concert loud?"} {
		put(d, contents.NewEntry{RawEntry: text, SessionID: rules.NewID()})
	}
	memorytest.Want(t, "when", found(d, retrieval.SearchArgs{Query: "when was the concert"}), "the concert was yesterday|the concert was loud|was the concert loud?")
	memorytest.Want(t, "by the date of capture", found(d, retrieval.SearchArgs{Query: "14 November 2023", TopK: 1}) != "", true)
}

// A word in half or all of the entries must still have a positive weight.
func TestInASmallMemoryTheEntryThatHasTheWordsIsFirst(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	for n := 2; n <= 4; n++ {
		for at := range n {
			for _, more := range []string{"", "haystack"} { // the other entries have this word too
				for _, other := range []string{"nothing of that kind", "it rained yesterday"} {
					d.MemoryID = d.NewMemory(memory.Caller{}, d.VaultID, rules.NewID())
					for i := range n {
						text := strings.TrimSpace(fmt.Sprint(other, " ", more))
						if i == at {
							text = "needle haystack"
						}
						put(d, contents.NewEntry{RawEntry: text})
					}
					queries := []string{"needle", "haystack needle"}
					if more == "" {
						queries = append(queries, "when was the needle there")
					}
					for _, query := range queries {
						if got := found(d, retrieval.SearchArgs{Query: query}); !strings.HasPrefix(got, "needle haystack") {
							t.Errorf("%q finds %s", query, got)
						}
					}
				}
			}
		}
	}
}

func TestTheAnswerNextToAQuestionOfTimeIsFirst(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	put(d, contents.NewEntry{RawEntry: "when did you go to Rome?"})
	put(d, contents.NewEntry{RawEntry: "last week, it was lovely"})
	memorytest.Want(t, "when", found(d, retrieval.SearchArgs{Query: "when did she go to Rome"}), "last week, it was lovely|when did you go to Rome?")
}

func TestNeighboursLendTheirWords(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	talk := rules.NewID()
	put(d, contents.NewEntry{RawEntry: "which instrument do you play?", SessionID: talk})
	put(d, contents.NewEntry{RawEntry: "the cello, since I was six", SessionID: talk})
	for range 3 {
		put(d, contents.NewEntry{RawEntry: "nothing of that kind", SessionID: rules.NewID()})
	}
	memorytest.Want(t, "the answer beside the question", found(d, retrieval.SearchArgs{Query: "instrument"}), "which instrument do you play?|the cello, since I was six")
}

func TestFiltersComeBeforeTheCap(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	session := rules.NewID()
	err := d.Write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		s, err := d.Enter(ctx, tx, memory.Caller{}, true)
		if err == nil {
			err = s.Open(ctx, d.MemoryID)
		}
		for i := 0; i < 2*ranking.MaxCandidates && err == nil; i++ {
			e := contents.EntryRow{Synced: true, CreationNS: memory.Time(i + 1)}
			e.Entry = contents.Entry{EntryID: rules.NewID(), ActorID: s.User.UserID, VaultID: d.VaultID, MemoryID: d.MemoryID, RawEntry: "needle needle needle", Tags: map[string]string{"k": "other"},
				CreationTime: memory.Time(i + 1), CapturedTime: memory.Time(i+1) * memory.Time(time.Hour)}
			err = contents.InsertEntry(ctx, s, &e)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	put(d, contents.NewEntry{RawEntry: "a rather long text that mentions a needle in passing?", Tags: map[string]string{"k": "v", "l": "w"}, SessionID: session})
	const text = "a rather long text that mentions a needle in passing?"
	for name, a := range map[string]retrieval.SearchArgs{
		"a tag": {Tags: map[string]string{"k": "v"}}, "two tags": {Tags: map[string]string{"k": "v", "l": "w"}}, "a session": {SessionID: session},
		"both": {Tags: map[string]string{"k": "v"}, SessionID: session},
	} {
		a.Query = "needle"
		memorytest.Want(t, name, found(d, a), text)
	}
	memorytest.Want(t, "a tag that is nowhere", found(d, retrieval.SearchArgs{Query: "needle", Tags: map[string]string{"k": "v", "l": "x"}}), "")
	memorytest.Want(t, "a session that is nowhere", found(d, retrieval.SearchArgs{Query: "needle", SessionID: rules.NewID()}), "")
	f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "needle", TopK: 1000}))(t)
	memorytest.Want(t, "clamped", f.Count, retrieval.MaxTopK)
	memorytest.Want(t, "older first among equal ones", f.Entries[0].CreationTime < f.Entries[1].CreationTime, true)
	memorytest.Want(t, "by default", strings.Count(found(d, retrieval.SearchArgs{Query: "needle"}), "|"), retrieval.DefaultTopK-1)
}

func TestChangesAndDeletesReachTheIndexInTheirTransaction(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	e := put(d, contents.NewEntry{RawEntry: "raw", Summary: "walnut", Tags: map[string]string{"k": "v"}})
	summary := "hazel"
	if _, _, err := d.PatchEntry(t.Context(), memory.Caller{}, d.MemoryID, e.EntryID, entries.Patch{Summary: &summary, Tags: map[string]string{"k": "w"}}); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "the old summary", found(d, retrieval.SearchArgs{Query: "walnut"}), "")
	memorytest.Want(t, "the new one", found(d, retrieval.SearchArgs{Query: "hazel"}), "raw")
	memorytest.Want(t, "the old tag", found(d, retrieval.SearchArgs{Query: "raw", Tags: map[string]string{"k": "v"}}), "")
	memorytest.Want(t, "the new tag", found(d, retrieval.SearchArgs{Query: "raw", Tags: map[string]string{"k": "w"}}), "raw")
	right := d.Add("better")
	if _, _, err := d.CorrectEntry(t.Context(), memory.Caller{}, d.MemoryID, e.EntryID, entries.Correction{CorrectedEntryID: right.EntryID, Reason: "wrong"}); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "corrected", strings.HasPrefix(found(d, retrieval.SearchArgs{Query: "hazel"}), "raw"), true)
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.MemoryID, e.EntryID); err != nil {
		t.Fatal(err)
	}
	memorytest.Want(t, "deleted", found(d, retrieval.SearchArgs{Query: "hazel raw"}), "")
	if _, err := d.DeleteMemory(t.Context(), memory.Caller{}, d.MemoryID); err != nil {
		t.Fatal(err)
	}
	var left int
	d.Query(&left, `SELECT (SELECT count(*) FROM memory_words_docsize) + (SELECT count(*) FROM memory_groups)`)
	memorytest.Want(t, "left of a deleted memory", left, 0)
}

func TestALostIndexIsRebuilt(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	talk := rules.NewID()
	for i := range 5 {
		put(d, contents.NewEntry{RawEntry: fmt.Sprint("needle ", i), SessionID: talk, Tags: map[string]string{"n": fmt.Sprint(i)}})
	}
	if _, _, err := d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: talk, Markdown: "about needles"}); err != nil {
		t.Fatal(err)
	}
	before := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "needle 3"}))(t)
	d.Exec(`INSERT INTO memory_words (memory_words) VALUES ('delete-all')`)
	d.Exec(`DELETE FROM memory_groups`)
	memorytest.Want(t, "lost", found(d, retrieval.SearchArgs{Query: "needle 3"}), "")
	for range 2 {
		if err := d.Store.Write(t.Context(), store.Full, items.Repair); err != nil {
			t.Fatal(err)
		}
		after := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "needle 3"}))(t)
		memorytest.Want(t, "rebuilt", memorytest.AsJSON(t, after), memorytest.AsJSON(t, before))
	}
	memorytest.Want(t, "tags too", found(d, retrieval.SearchArgs{Query: "needle", Tags: map[string]string{"n": "4"}}), "needle 4")
}

func TestASearchReturnsTheLatestAndTheBestContext(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	write := func(text string) contents.Document {
		out, _, err := d.UpdateContext(t.Context(), memory.Caller{}, entries.NewDocument{MemoryID: d.MemoryID, SessionID: rules.NewID(), Markdown: text})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	write("# Boats\nwe sail on sundays")
	second := write("# Boats\nwe sail on mondays")
	third := write("# Cars")
	f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "sailing boats"}))(t)
	memorytest.Want(t, "no hit", f.Count, 0)
	memorytest.Want(t, "latest", f.LatestContext, "# Cars")
	memorytest.Want(t, "its time", f.ContextTimestamp, third.UpdatedAt)
	memorytest.Want(t, "best, of equal ones the newest", f.BestContext, "# Boats\nwe sail on mondays")
	memorytest.Want(t, "its time", f.BestContextTimestamp, second.UpdatedAt)
	memorytest.Want(t, "its score", f.BestContextScore > 0.9 && f.BestContextScore <= 1, true)
	f = memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "trains"}))(t)
	memorytest.Want(t, "best without any", f.BestContext, "")
	memorytest.Want(t, "left out", strings.Contains(memorytest.AsJSON(t, f), "best"), false)
	memorytest.Want(t, "latest all the same", f.LatestContext, "# Cars")
}

func TestTopKSearchesOrLists(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	for i := range 12 {
		d.Add(fmt.Sprint("entry ", i))
	}
	found, listed, err := d.TopK(t.Context(), memory.Caller{}, d.MemoryID, 3, "entry 4")
	if err != nil || listed != nil {
		t.Fatal(listed, err)
	}
	memorytest.Want(t, "found", found.Count, 3)
	memorytest.Want(t, "the best", found.Entries[0].RawEntry, "entry 4")
	for k, n := range map[int64]int{0: 10, -1: 10, 2: 2, 1000: 12} {
		found, listed, err = d.TopK(t.Context(), memory.Caller{}, d.MemoryID, k, "")
		if err != nil || found != nil {
			t.Fatal(found, err)
		}
		memorytest.Want(t, fmt.Sprint("listed of ", k), listed.Count, n)
		memorytest.Want(t, "the newest first", listed.Entries[0].RawEntry, "entry 11")
	}
	_, listed, err = d.TopK(t.Context(), memory.Caller{}, d.MemoryID, 1000, "")
	memorytest.Want(t, "at most a list's", err == nil && listed.AppliedLimit == 50, true)
}

func TestCoverageShowsWhatWasPurged(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	d.Add("a needle")
	d.Exec(`UPDATE memory_streams SET purged_before_ns = 1600000000000000000 WHERE stream = ?`, d.MemoryID)
	f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "needle"}))(t)
	memorytest.Want(t, "coverage", memorytest.AsJSON(t, f.Coverage), `{"from":"2020-09-13T12:26:40Z","complete":false}`)
	memorytest.Want(t, "what is held", f.Count, 1)
}

func TestBadArgumentsOfASearch(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	for name, a := range map[string]retrieval.SearchArgs{
		`"field":"query"`:      {Query: " \n"},
		`exceeds 1000`:         {Query: strings.Repeat("é", 1001)},
		`not valid UTF-8`:      {Query: "\xff"},
		`a NUL`:                {Query: "a\x00"},
		`"field":"mode"`:       {Query: "a", Mode: "fuzzy"},
		`"field":"session_id"`: {Query: "a", SessionID: "x"},
		`"field":"tags"`:       {Query: "a", Tags: map[string]string{"": "x"}},
	} {
		a.MemoryID = d.MemoryID
		_, err := d.Search(t.Context(), memory.Caller{}, a)
		memorytest.WantError(t, name, err, 400, memory.CodeInvalid, name)
	}
	memorytest.Want(t, "a thousand", found(d, retrieval.SearchArgs{Query: strings.Repeat("é", 1000)}), "")
	memorytest.Want(t, "many words", found(d, retrieval.SearchArgs{Query: strings.Repeat("aB1 ", 250)}), "")
}

func TestACollisionOfTagHashesOrGroupsIsNoHit(t *testing.T) {
	t.Parallel()
	a := retrieval.SearchArgs{Tags: map[string]string{"k": "v"}, SessionID: "s"}
	memorytest.Want(t, "as asked", a.Admits(`{"k":"v","l":"w"}`, "s"), true)
	memorytest.Want(t, "another tag", a.Admits(`{"k":"w"}`, "s"), false)
	memorytest.Want(t, "another session", a.Admits(`{"k":"v"}`, "t"), false)
	memorytest.Want(t, "no tags", a.Admits(`{`, "s"), false)
}

func FuzzSearch(f *testing.F) {
	for _, q := range []string{"when did we deploy", `"a* OR (b`, "\x00", "é\u0301 東京", strings.Repeat("x ", 300), "the", "-1:2^"} {
		f.Add(q, "text of "+q)
	}
	d := memorytest.NewDesk(f)
	n := 0
	f.Fuzz(func(t *testing.T, query, text string) {
		n++
		d := &memorytest.Desk{TB: t, Service: d.Service, Clock: d.Clock, VaultID: d.VaultID}
		d.MemoryID = d.NewMemory(memory.Caller{}, d.VaultID, fmt.Sprint("f", n))
		_, _, bad := d.AddEntry(t.Context(), memory.Caller{}, contents.NewEntry{MemoryID: d.MemoryID, RawEntry: text})
		found, err := d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: query})
		sound := utf8.ValidString(query) && strings.TrimSpace(query) != "" && !strings.Contains(query, "\x00") && utf8.RuneCountInString(query) <= retrieval.MaxQuery
		if (err == nil) != sound {
			t.Fatalf("%q: %v", query, err)
		}
		if err != nil || bad != nil {
			return
		}
		shared := false
		has := ranking.Terms(stampedText(found, text))
		q := ranking.Ask(query)
		for _, term := range q.Terms {
			for _, h := range has {
				shared = shared || h == term
			}
		}
		if shared != (found.Count == 1) {
			t.Errorf("%q over %q: %d hits", query, text, found.Count)
		}
	})
}

// stampedText returns the text of the entry in the index. This is the stored text, which
// differs from the given one if that contained a secret.
func stampedText(found retrieval.Found, text string) string {
	if found.Count == 1 {
		text = found.Entries[0].RawEntry
	}
	return ranking.StampedLine(time.Unix(1_700_000_000, 0), "", text)
}

func TestAnOptimizedIndexFindsTheSame(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	var gone entries.Added
	for i := range 40 {
		gone = put(d, contents.NewEntry{RawEntry: fmt.Sprint("needle ", i), SessionID: rules.NewID()})
	}
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.MemoryID, gone.EntryID); err != nil {
		t.Fatal(err)
	}
	before := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "needle 7"}))(t)
	var parts, left int
	d.Query(&parts, `SELECT count(DISTINCT segid) FROM memory_words_idx`)
	for range 2 {
		if err := d.OptimizeIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d.Query(&left, `SELECT count(DISTINCT segid) FROM memory_words_idx`)
	memorytest.Want(t, "parts were several", parts > 1, true)
	memorytest.Want(t, "parts are one", left, 1)
	after := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "needle 7"}))(t)
	memorytest.Want(t, "the answer", memorytest.AsJSON(t, after), memorytest.AsJSON(t, before))
	memorytest.Want(t, "without a store", memories.New(nil, memory.Config{}).OptimizeIndex(t.Context()), nil)
}

func TestAmongLongEntriesTheOneAboutTheQuestionComesBeforeOneThatHasItsWordsByChance(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	filler := strings.Repeat("The plan lists steps for the report, the parser and the release of each module in turn. ", 12)
	about := "The refund window stays as it is. A refund outside the window needs a note. " + filler[:len(filler)/3]
	chance := "Refund codes are in the table. " + filler + "Then open a window for the editor. " + filler
	for i := range 6 {
		put(d, contents.NewEntry{RawEntry: fmt.Sprintf("%d: %s", i, filler), SessionID: rules.NewID()})
	}
	put(d, contents.NewEntry{RawEntry: chance, SessionID: rules.NewID()})
	put(d, contents.NewEntry{RawEntry: about, SessionID: rules.NewID()})
	if first, _, _ := strings.Cut(found(d, retrieval.SearchArgs{Query: "Which refund window applies?"}), "|"); first != about {
		t.Errorf("the first hit is %.60q", first)
	}
}

func TestAnUnknownWordIsReplacedByTheNearestOneThatAnEntryHolds(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	put(d, contents.NewEntry{RawEntry: "the ledger is rounded to whole cents"})
	put(d, contents.NewEntry{RawEntry: "lunch is at noon"})
	for query, corrected := range map[string]string{
		"legder": "ledger", "how was the Ledgr rounded": "ledger", "round": "", "quarterly": "",
	} {
		f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: query}))(t)
		var by []string
		for _, known := range f.Corrected {
			by = append(by, known)
		}
		memorytest.Want(t, query, strings.Join(by, " "), corrected)
		memorytest.Want(t, query+" is found", len(f.Entries) > 0, query != "quarterly")
		memorytest.Want(t, query+" has a hint", f.Hint != "", query == "quarterly")
	}
	f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "legder", AsIs: true}))(t)
	memorytest.Want(t, "as it is", len(f.Entries)+len(f.Corrected), 0)
	if !strings.Contains(f.Hint, "Try other words") {
		t.Errorf("the hint is %q", f.Hint)
	}
}
