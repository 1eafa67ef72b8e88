package memory

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cairn/internal/memory/ranking"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// found returns the texts that a search finds, best first.
func (d *desk) found(a SearchArgs) string {
	d.Helper()
	if a.MemoryID == "" {
		a.MemoryID = d.memory
	}
	f, err := d.Search(d.Context(), Caller{}, a)
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
func (d *desk) put(a NewEntry) Added {
	d.Helper()
	if a.MemoryID == "" {
		a.MemoryID = d.memory
	}
	out, _, err := d.AddEntry(d.Context(), Caller{}, a)
	if err != nil {
		d.Fatal(err)
	}
	return out
}

func TestACommittedEntryIsFoundAtOnceByRawAndSummary(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	want(t, "in an empty memory", d.found(SearchArgs{Query: "deploy"}), "")
	added := d.put(NewEntry{RawEntry: "the deployment goes through staging", Summary: "about releases"})
	for _, query := range []string{"deployments", "STAGING?", "release", "how does it go"} {
		want(t, query, d.found(SearchArgs{Query: query}), "the deployment goes through staging")
	}
	f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "staging"}))(t)
	me := must(d.Whoami(t.Context(), Caller{}))(t)
	h := f.Entries[0]
	score := h.Score
	h.Score = 0
	want(t, "the hit", h, Hit{added.EntryID, me.UserID, d.memory, "about releases", "the deployment goes through staging", added.CreationTime, 0, "", ""})
	want(t, "a score above nothing", score > 0.3, true)
	want(t, "mode", f.Mode, ModeLexical)
	want(t, "coverage", asJSON(t, f.Coverage), `{"from":null,"complete":true}`)
	want(t, "no contexts", f.LatestContext+f.BestContext, "")
	want(t, "the keys", strings.Contains(asJSON(t, f), "Context"), false)
}

func TestALongEntryShowsWhereItMatched(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(NewEntry{RawEntry: strings.Repeat("the sea is calm and wide. ", 20) + "The lighthouse stands on a rock. " + strings.Repeat("Gulls cry. ", 20)})
	h := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "lighthouse"}))(t).Entries[0]
	want(t, "one line around the word", strings.Contains(h.Excerpt, "lighthouse stands") && utf8.RuneCountInString(h.Excerpt) <= maxExcerpt, true)
}

func TestAnInflightEntryIsFoundOnceItIsCommittedAndNoEarlier(t *testing.T) {
	t.Parallel()
	d := newDesk(t).joined()
	d.add("a needle")
	want(t, "inflight", d.found(SearchArgs{Query: "needle"}), "")
	me := must(d.Whoami(t.Context(), Caller{}))(t)
	if err := d.Leave(t.Context(), me.UserID, true); err != nil {
		t.Fatal(err)
	}
	want(t, "committed", d.found(SearchArgs{Query: "needle"}), "a needle")
}

func TestASearchStaysInItsMemoryAndWithItsUser(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add("here is a needle")
	other := d.newMemory(Caller{}, d.vault, "other")
	d.put(NewEntry{MemoryID: other, RawEntry: "there is a needle"})
	want(t, "this memory", d.found(SearchArgs{Query: "needle"}), "here is a needle")
	want(t, "the other", d.found(SearchArgs{MemoryID: other, Query: "needle"}), "there is a needle")
	stranger := must(d.AddUser(t.Context()))(t)
	_, err := d.Search(t.Context(), Caller{User: stranger.UserID}, SearchArgs{MemoryID: d.memory, Query: "needle"})
	wantError(t, "a foreign memory", err, 404, CodeNotFound)
	_, err = d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: rules.NewID(), Query: "needle"})
	wantError(t, "no memory", err, 404, CodeNotFound)
	want(t, "of none of the words", d.found(SearchArgs{Query: "haystack"}), "")
}

func TestWhatOthersKeepBearsNotOnARanking(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add("red apples and green pears")
	d.add("green apples")
	before := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "red apples"}))(t)
	other := d.newMemory(Caller{}, d.vault, "other")
	for range 20 {
		d.put(NewEntry{MemoryID: other, RawEntry: "red red red"})
	}
	after := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "red apples"}))(t)
	want(t, "the answer", asJSON(t, after), asJSON(t, before))
}

func TestTheTextOfAQueryIsNeverSyntax(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add("alpha beta")
	d.add("gamma")
	for query, hits := range map[string]string{
		`alpha AND gamma`: "gamma|alpha beta", `alpha NOT beta`: "alpha beta|gamma", `"alpha`: "alpha beta|gamma", `words:alpha`: "alpha beta|gamma",
		`NEAR(alpha gamma, 1)`: "gamma|alpha beta", `alph*`: "", `*`: "", `(((`: "", "😀": "", `' OR 1=1 --`: "", "^gamma": "gamma|alpha beta",
	} {
		want(t, query, d.found(SearchArgs{Query: query, AsIs: true}), hits)
	}
}

func TestAQueryOfStopWordsKeepsThem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(NewEntry{RawEntry: "to be or not to be", SessionID: rules.NewID()})
	d.put(NewEntry{RawEntry: "something else", SessionID: rules.NewID()})
	want(t, "stop words alone", d.found(SearchArgs{Query: "who are you not"}), "to be or not to be")
	want(t, "beside others", d.found(SearchArgs{Query: "are you not else"}), "something else")
}

func TestWordsAreFoundInOtherForms(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add("We bought two bikes for the children, says Zoë of 東京 in getUserById")
	for _, query := range []string{"buy", "bicycle", "child", "zoe", "ZOË", "京", "user", "getuserbyid", "get_user"} {
		want(t, query, d.found(SearchArgs{Query: query}) != "", true)
	}
}

func TestWhoIsNamedAndSpeaksComesFirst(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, name := range []string{"Ann", "Ben"} {
		d.put(NewEntry{RawEntry: "my trip went well", Metadata: []byte(`{"speaker":"` + name + `"}`), SessionID: rules.NewID()})
	}
	d.put(NewEntry{RawEntry: "my trip went well, too", Metadata: []byte(`{"speaker":7}`), SessionID: rules.NewID()})
	first := func(query string) string {
		f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: query}))(t)
		return must(d.GetEntry(t.Context(), Caller{}, d.memory, f.Entries[0].EntryID))(t).metadataText()
	}
	want(t, "ben", first("how was ben's trip"), `{"speaker":"Ben"}`)
	want(t, "ann", first("how was Ann's trip"), `{"speaker":"Ann"}`)
}

func (e Entry) metadataText() string { return string(e.Metadata) }

func TestAQuestionOfTimeFindsATextThatNamesOne(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, text := range []string{"the concert was loud", "the concert was yesterday", "was the concert loud?"} {
		d.put(NewEntry{RawEntry: text, SessionID: rules.NewID()})
	}
	want(t, "when", d.found(SearchArgs{Query: "when was the concert"}), "the concert was yesterday|the concert was loud|was the concert loud?")
	want(t, "by the date of capture", d.found(SearchArgs{Query: "14 November 2023", TopK: 1}) != "", true)
}

// A word in half or all of the entries must still have a positive weight.
func TestInASmallMemoryTheEntryThatHasTheWordsIsFirst(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for n := 2; n <= 4; n++ {
		for at := range n {
			for _, more := range []string{"", "haystack"} { // the other entries have this word too
				for _, other := range []string{"nothing of that kind", "it rained yesterday"} {
					d.memory = d.newMemory(Caller{}, d.vault, rules.NewID())
					for i := range n {
						text := strings.TrimSpace(fmt.Sprint(other, " ", more))
						if i == at {
							text = "needle haystack"
						}
						d.put(NewEntry{RawEntry: text})
					}
					queries := []string{"needle", "haystack needle"}
					if more == "" {
						queries = append(queries, "when was the needle there")
					}
					for _, query := range queries {
						if got := d.found(SearchArgs{Query: query}); !strings.HasPrefix(got, "needle haystack") {
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
	d := newDesk(t)
	d.put(NewEntry{RawEntry: "when did you go to Rome?"})
	d.put(NewEntry{RawEntry: "last week, it was lovely"})
	want(t, "when", d.found(SearchArgs{Query: "when did she go to Rome"}), "last week, it was lovely|when did you go to Rome?")
}

func TestNeighboursLendTheirWords(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	talk := rules.NewID()
	d.put(NewEntry{RawEntry: "which instrument do you play?", SessionID: talk})
	d.put(NewEntry{RawEntry: "the cello, since I was six", SessionID: talk})
	for range 3 {
		d.put(NewEntry{RawEntry: "nothing of that kind", SessionID: rules.NewID()})
	}
	want(t, "the answer beside the question", d.found(SearchArgs{Query: "instrument"}), "which instrument do you play?|the cello, since I was six")
}

func TestFiltersComeBeforeTheCap(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	session := rules.NewID()
	err := d.write(t.Context(), func(ctx context.Context, tx *store.Tx) error {
		s, err := d.enter(ctx, tx, Caller{}, true)
		if err == nil {
			err = s.open(ctx, d.memory)
		}
		for i := 0; i < 2*ranking.MaxCandidates && err == nil; i++ {
			e := entryRow{synced: true, creationNS: Time(i + 1)}
			e.Entry = Entry{EntryID: rules.NewID(), ActorID: s.u.ID, VaultID: d.vault, MemoryID: d.memory, RawEntry: "needle needle needle", Tags: map[string]string{"k": "other"},
				CreationTime: Time(i + 1), CapturedTime: Time(i+1) * Time(time.Hour)}
			err = s.insert(ctx, &e)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	d.put(NewEntry{RawEntry: "a rather long text that mentions a needle in passing?", Tags: map[string]string{"k": "v", "l": "w"}, SessionID: session})
	const text = "a rather long text that mentions a needle in passing?"
	for name, a := range map[string]SearchArgs{
		"a tag": {Tags: map[string]string{"k": "v"}}, "two tags": {Tags: map[string]string{"k": "v", "l": "w"}}, "a session": {SessionID: session},
		"both": {Tags: map[string]string{"k": "v"}, SessionID: session},
	} {
		a.Query = "needle"
		want(t, name, d.found(a), text)
	}
	want(t, "a tag that is nowhere", d.found(SearchArgs{Query: "needle", Tags: map[string]string{"k": "v", "l": "x"}}), "")
	want(t, "a session that is nowhere", d.found(SearchArgs{Query: "needle", SessionID: rules.NewID()}), "")
	f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "needle", TopK: 1000}))(t)
	want(t, "clamped", f.Count, MaxTopK)
	want(t, "older first among equal ones", f.Entries[0].CreationTime < f.Entries[1].CreationTime, true)
	want(t, "by default", strings.Count(d.found(SearchArgs{Query: "needle"}), "|"), DefaultTopK-1)
}

func TestChangesAndDeletesReachTheIndexInTheirTransaction(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	e := d.put(NewEntry{RawEntry: "raw", Summary: "walnut", Tags: map[string]string{"k": "v"}})
	summary := "hazel"
	if _, _, err := d.PatchEntry(t.Context(), Caller{}, d.memory, e.EntryID, Patch{Summary: &summary, Tags: map[string]string{"k": "w"}}); err != nil {
		t.Fatal(err)
	}
	want(t, "the old summary", d.found(SearchArgs{Query: "walnut"}), "")
	want(t, "the new one", d.found(SearchArgs{Query: "hazel"}), "raw")
	want(t, "the old tag", d.found(SearchArgs{Query: "raw", Tags: map[string]string{"k": "v"}}), "")
	want(t, "the new tag", d.found(SearchArgs{Query: "raw", Tags: map[string]string{"k": "w"}}), "raw")
	right := d.add("better")
	if _, _, err := d.CorrectEntry(t.Context(), Caller{}, d.memory, e.EntryID, Correction{right.EntryID, "wrong"}); err != nil {
		t.Fatal(err)
	}
	want(t, "corrected", strings.HasPrefix(d.found(SearchArgs{Query: "hazel"}), "raw"), true)
	if _, err := d.DeleteEntry(t.Context(), Caller{}, d.memory, e.EntryID); err != nil {
		t.Fatal(err)
	}
	want(t, "deleted", d.found(SearchArgs{Query: "hazel raw"}), "")
	if _, err := d.DeleteMemory(t.Context(), Caller{}, d.memory); err != nil {
		t.Fatal(err)
	}
	var left int
	d.query(&left, `SELECT (SELECT count(*) FROM memory_words_docsize) + (SELECT count(*) FROM memory_groups)`)
	want(t, "left of a deleted memory", left, 0)
}

func TestALostIndexIsRebuilt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	talk := rules.NewID()
	for i := range 5 {
		d.put(NewEntry{RawEntry: fmt.Sprint("needle ", i), SessionID: talk, Tags: map[string]string{"n": fmt.Sprint(i)}})
	}
	if _, _, err := d.UpdateContext(t.Context(), Caller{}, NewDocument{MemoryID: d.memory, SessionID: talk, Markdown: "about needles"}); err != nil {
		t.Fatal(err)
	}
	before := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "needle 3"}))(t)
	d.sql(`INSERT INTO memory_words (memory_words) VALUES ('delete-all')`)
	d.sql(`DELETE FROM memory_groups`)
	want(t, "lost", d.found(SearchArgs{Query: "needle 3"}), "")
	for range 2 {
		if err := d.store.Write(t.Context(), store.Full, Repair); err != nil {
			t.Fatal(err)
		}
		after := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "needle 3"}))(t)
		want(t, "rebuilt", asJSON(t, after), asJSON(t, before))
	}
	want(t, "tags too", d.found(SearchArgs{Query: "needle", Tags: map[string]string{"n": "4"}}), "needle 4")
}

func TestASearchReturnsTheLatestAndTheBestContext(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	write := func(text string) Document {
		out, _, err := d.UpdateContext(t.Context(), Caller{}, NewDocument{MemoryID: d.memory, SessionID: rules.NewID(), Markdown: text})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	write("# Boats\nwe sail on sundays")
	second := write("# Boats\nwe sail on mondays")
	third := write("# Cars")
	f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "sailing boats"}))(t)
	want(t, "no hit", f.Count, 0)
	want(t, "latest", f.LatestContext, "# Cars")
	want(t, "its time", f.ContextTimestamp, third.UpdatedAt)
	want(t, "best, of equal ones the newest", f.BestContext, "# Boats\nwe sail on mondays")
	want(t, "its time", f.BestContextTimestamp, second.UpdatedAt)
	want(t, "its score", f.BestContextScore > 0.9 && f.BestContextScore <= 1, true)
	f = must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "trains"}))(t)
	want(t, "best without any", f.BestContext, "")
	want(t, "left out", strings.Contains(asJSON(t, f), "best"), false)
	want(t, "latest all the same", f.LatestContext, "# Cars")
}

func TestTopKSearchesOrLists(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 12 {
		d.add(fmt.Sprint("entry ", i))
	}
	found, listed, err := d.TopK(t.Context(), Caller{}, d.memory, 3, "entry 4")
	if err != nil || listed != nil {
		t.Fatal(listed, err)
	}
	want(t, "found", found.Count, 3)
	want(t, "the best", found.Entries[0].RawEntry, "entry 4")
	for k, n := range map[int64]int{0: 10, -1: 10, 2: 2, 1000: 12} {
		found, listed, err = d.TopK(t.Context(), Caller{}, d.memory, k, "")
		if err != nil || found != nil {
			t.Fatal(found, err)
		}
		want(t, fmt.Sprint("listed of ", k), listed.Count, n)
		want(t, "the newest first", listed.Entries[0].RawEntry, "entry 11")
	}
	_, listed, err = d.TopK(t.Context(), Caller{}, d.memory, 1000, "")
	want(t, "at most a list's", err == nil && listed.AppliedLimit == 50, true)
}

func TestCoverageShowsWhatWasPurged(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add("a needle")
	d.sql(`UPDATE memory_streams SET purged_before_ns = 1600000000000000000 WHERE stream = ?`, d.memory)
	f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "needle"}))(t)
	want(t, "coverage", asJSON(t, f.Coverage), `{"from":"2020-09-13T12:26:40Z","complete":false}`)
	want(t, "what is held", f.Count, 1)
}

func TestBadArgumentsOfASearch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, a := range map[string]SearchArgs{
		`"field":"query"`:      {Query: " \n"},
		`exceeds 1000`:         {Query: strings.Repeat("é", 1001)},
		`not valid UTF-8`:      {Query: "\xff"},
		`a NUL`:                {Query: "a\x00"},
		`"field":"mode"`:       {Query: "a", Mode: "fuzzy"},
		`"field":"session_id"`: {Query: "a", SessionID: "x"},
		`"field":"tags"`:       {Query: "a", Tags: map[string]string{"": "x"}},
	} {
		a.MemoryID = d.memory
		_, err := d.Search(t.Context(), Caller{}, a)
		wantError(t, name, err, 400, CodeInvalid, name)
	}
	want(t, "a thousand", d.found(SearchArgs{Query: strings.Repeat("é", 1000)}), "")
	want(t, "many words", d.found(SearchArgs{Query: strings.Repeat("aB1 ", 250)}), "")
}

func TestACollisionOfTagHashesOrGroupsIsNoHit(t *testing.T) {
	t.Parallel()
	a := SearchArgs{Tags: map[string]string{"k": "v"}, SessionID: "s"}
	want(t, "as asked", a.admits(`{"k":"v","l":"w"}`, "s"), true)
	want(t, "another tag", a.admits(`{"k":"w"}`, "s"), false)
	want(t, "another session", a.admits(`{"k":"v"}`, "t"), false)
	want(t, "no tags", a.admits(`{`, "s"), false)
}

func FuzzSearch(f *testing.F) {
	for _, q := range []string{"when did we deploy", `"a* OR (b`, "\x00", "é\u0301 東京", strings.Repeat("x ", 300), "the", "-1:2^"} {
		f.Add(q, "text of "+q)
	}
	d := newDesk(f)
	n := 0
	f.Fuzz(func(t *testing.T, query, text string) {
		n++
		d := &desk{TB: t, Service: d.Service, clock: d.clock, vault: d.vault}
		d.memory = d.newMemory(Caller{}, d.vault, fmt.Sprint("f", n))
		_, _, bad := d.AddEntry(t.Context(), Caller{}, NewEntry{MemoryID: d.memory, RawEntry: text})
		found, err := d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: query})
		sound := utf8.ValidString(query) && strings.TrimSpace(query) != "" && !strings.Contains(query, "\x00") && utf8.RuneCountInString(query) <= maxQuery
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
func stampedText(found Found, text string) string {
	if found.Count == 1 {
		text = found.Entries[0].RawEntry
	}
	return ranking.StampedLine(time.Unix(1_700_000_000, 0), "", text)
}

func TestAnOptimizedIndexFindsTheSame(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var gone Added
	for i := range 40 {
		gone = d.put(NewEntry{RawEntry: fmt.Sprint("needle ", i), SessionID: rules.NewID()})
	}
	if _, err := d.DeleteEntry(t.Context(), Caller{}, d.memory, gone.EntryID); err != nil {
		t.Fatal(err)
	}
	before := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "needle 7"}))(t)
	var parts, left int
	d.query(&parts, `SELECT count(DISTINCT segid) FROM memory_words_idx`)
	for range 2 {
		if err := d.OptimizeIndex(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	d.query(&left, `SELECT count(DISTINCT segid) FROM memory_words_idx`)
	want(t, "parts were several", parts > 1, true)
	want(t, "parts are one", left, 1)
	after := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "needle 7"}))(t)
	want(t, "the answer", asJSON(t, after), asJSON(t, before))
	want(t, "without a store", New(nil, Config{}).OptimizeIndex(t.Context()), nil)
}

func TestAmongLongEntriesTheOneAboutTheQuestionComesBeforeOneThatHasItsWordsByChance(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	filler := strings.Repeat("The plan lists steps for the report, the parser and the release of each module in turn. ", 12)
	about := "The refund window stays as it is. A refund outside the window needs a note. " + filler[:len(filler)/3]
	chance := "Refund codes are in the table. " + filler + "Then open a window for the editor. " + filler
	for i := range 6 {
		d.put(NewEntry{RawEntry: fmt.Sprintf("%d: %s", i, filler), SessionID: rules.NewID()})
	}
	d.put(NewEntry{RawEntry: chance, SessionID: rules.NewID()})
	d.put(NewEntry{RawEntry: about, SessionID: rules.NewID()})
	if first, _, _ := strings.Cut(d.found(SearchArgs{Query: "Which refund window applies?"}), "|"); first != about {
		t.Errorf("the first hit is %.60q", first)
	}
}

func TestAnUnknownWordIsReplacedByTheNearestOneThatAnEntryHolds(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put(NewEntry{RawEntry: "the ledger is rounded to whole cents"})
	d.put(NewEntry{RawEntry: "lunch is at noon"})
	for query, corrected := range map[string]string{
		"legder": "ledger", "how was the Ledgr rounded": "ledger", "round": "", "quarterly": "",
	} {
		f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: query}))(t)
		var by []string
		for _, known := range f.Corrected {
			by = append(by, known)
		}
		want(t, query, strings.Join(by, " "), corrected)
		want(t, query+" is found", len(f.Entries) > 0, query != "quarterly")
		want(t, query+" has a hint", f.Hint != "", query == "quarterly")
	}
	f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "legder", AsIs: true}))(t)
	want(t, "as it is", len(f.Entries)+len(f.Corrected), 0)
	if !strings.Contains(f.Hint, "Try other words") {
		t.Errorf("the hint is %q", f.Hint)
	}
}
