package search_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"cairn/internal/observation"
	"cairn/internal/observation/forget"
	"cairn/internal/observation/integrity"
	"cairn/internal/observation/observationtest"
	"cairn/internal/observation/search"
	"cairn/internal/store"
)

// recalls searches all projects and returns the sessions of the result, best first.
func recalls(b observationtest.Bench, query string) (sessions []string, out search.Recalled) {
	b.T.Helper()
	out, err := search.Recall(b.T.Context(), b.Service, search.RecallArgs{Query: query})
	if err != nil {
		b.T.Fatal(err)
	}
	for _, s := range out.Sessions {
		sessions = append(sessions, s.SessionID)
	}
	return sessions, out
}

// turn records a prompt, a command and an answer of a session, and the session's end if ends is
// true.
func turn(b observationtest.Bench, session, prompt, command, answer string, ends bool) {
	b.T.Helper()
	b.Record(observation.Event{Kind: observation.Prompt, Session: session, Text: prompt, Source: "UserPromptSubmit"})
	b.Record(observation.Event{Kind: observation.Tool, Session: session, Source: "PostToolUse", Calls: []observation.Call{observationtest.Bash(command)}})
	b.Record(observation.Event{Kind: observation.Message, Session: session, Text: answer, Source: "Stop", TurnEnds: ends})
}

func stale(b observationtest.Bench) (n int) {
	b.T.Helper()
	if err := b.Store.Read(b.T.Context(), scalar(&n, `SELECT count(*) FROM stale_turns`)); err != nil {
		b.T.Fatal(err)
	}
	return n
}

func TestASentenceFindsTheSessionWhoseTurnHoldsMostOfIt(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "harbour", "make the beacon blink slower", "go test ./beacon", "The lamp waits two seconds between flashes.", true)
	turn(b, "galley", "the soup recipe burns", "grep -rn simmer .", "Simmering is lower now.", true)
	if n := stale(b); n != 0 {
		t.Errorf("%d sessions are not indexed after their turns have ended", n)
	}
	got, out := recalls(b, "Why did the beacon's lamp wait between two flashes?")
	if len(got) != 1 || got[0] != "harbour" || out.Matched != search.MatchedWords {
		t.Fatalf("found %v: %+v", got, out)
	}
	if item := out.Sessions[0].Items[0]; item.ObsType != "agent_message" || item.Matched != search.MatchedSome || !strings.Contains(item.Excerpt, "between flashes") {
		t.Errorf("its best row is %+v", item)
	}
	if about := out.Sessions[0].About; about != "make the beacon blink slower" {
		t.Errorf("it was about %q", about)
	}
}

func TestARowIsFoundBeforeItsTurnEnds(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "old", "hoist the mainsail", "make sail", "Hoisted.", true)
	turn(b, "open", "paint the figurehead", "brush --gold", "Half of it is done.", false)
	if n := stale(b); n != 1 {
		t.Errorf("%d sessions wait for the index, want 1", n)
	}
	if got, _ := recalls(b, "who painted the figurehead gold?"); len(got) == 0 || got[0] != "open" {
		t.Errorf("found %v", got)
	}
	if n, err := b.IndexTurns(t.Context(), 1000); err != nil || n == 0 || stale(b) != 0 {
		t.Errorf("indexed %d rows, %d sessions wait: %v", n, stale(b), err)
	}
	if got, _ := recalls(b, "who painted the figurehead gold?"); len(got) == 0 || got[0] != "open" {
		t.Errorf("found %v once it is indexed", got)
	}
}

func TestATypingErrorIsCorrectedAndToldOf(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "s1", "the retries are exhausted", "go test ./retry", "Fixed.", true)
	got, out := recalls(b, "exhaustd retrys")
	if len(got) != 1 || out.Corrected["exhaustd"] != "exhausted" {
		t.Errorf("found %v, corrected %v", got, out.Corrected)
	}
}

func TestATimeInTheQuestionPutsItsTurnsFirst(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "before", "tune the engine again and again", "make engine", "Tuned the engine.", true)
	b.Now.Add(3 * observation.SecondsPerDay)
	turn(b, "after", "listen to the engine", "make noise", "It hums.", true)
	day := time.Unix(b.Now.Load(), 0).In(time.Local).Format("2006-01-02")
	if got, out := recalls(b, "what about the engine on "+day); len(got) != 2 || got[0] != "after" || out.Period == nil {
		t.Errorf("found %v: %+v", got, out.Period)
	}
	if got, out := recalls(b, "what happened on "+day+"?"); len(got) != 1 || got[0] != "after" || out.Matched != search.MatchedPeriod {
		t.Errorf("of the day alone: %v, %s", got, out.Matched)
	}
	if got, out := recalls(b, "what did we do on "+day+"?"); len(got) != 1 || got[0] != "after" || out.Matched != search.MatchedPeriod {
		t.Errorf("of the day with words that say nothing: %v, %s", got, out.Matched)
	}
	rows, err := search.Find(t.Context(), b.Service, search.FindArgs{SearchArgs: search.SearchArgs{Query: "what did we do on " + day + "?", Limit: 10}})
	if err != nil || len(rows) != 1 || rows[0].Excerpt != "listen to the engine" {
		t.Errorf("rows of the day are %+v: %v", rows, err)
	}
	if got, out := recalls(b, "xylophone"); len(got) != 2 || got[0] != "after" || out.Matched != search.MatchedNewest {
		t.Errorf("without any match: %v, %s", got, out.Matched)
	}
}

func TestATimeComesBeforeEverydayWordsOfOtherTimes(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "that day", "listen to the engine", "make noise", "It hums.", true)
	day := time.Unix(b.Now.Load(), 0).In(time.Local).Format("2006-01-02")
	b.Now.Add(30 * observation.SecondsPerDay)
	turn(b, "later", "build it, build it", "make build", "Built.", true)
	if got, out := recalls(b, "what did we build on "+day+"?"); len(got) != 1 || got[0] != "that day" || out.Matched != search.MatchedPeriod {
		t.Errorf("an everyday word: %v, %s", got, out.Matched)
	}
	if got, out := recalls(b, "who built the noise on "+day+"?"); len(got) == 0 || got[0] != "that day" || out.Matched != search.MatchedWords {
		t.Errorf("a word of the day: %v, %s", got, out.Matched)
	}
}

func TestNeighboursFindTheIdentifierThatTheyAreInTheText(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "prose", "the harbour has a code and an owner", "ls harbour", "An owner keeps the code of the harbour, the owner of the code.", true)
	turn(b, "name", "write the file", "vim CODEOWNERS", "CODEOWNERS is there.", true)
	if got, _ := recalls(b, "who is the code owner?"); len(got) != 2 {
		t.Errorf("found %v, want both sessions", got)
	}
}

func TestWordsThatStandTogetherPutTheirSessionFirst(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	far := strings.Repeat("and the tide goes out and comes in and nobody looks at it ", 20)
	turn(b, "near", "an anchor and a winch "+far, "ls", "Hm "+far+" an anchor", true)
	turn(b, "apart", "an anchor "+far, "ls", "a winch "+far+" an anchor", true)
	out, err := search.Recall(t.Context(), b.Service, search.RecallArgs{Query: "what holds the boat?", Words: "anchor winch"})
	if err != nil || len(out.Sessions) != 2 || out.Sessions[0].SessionID != "near" {
		t.Errorf("found %+v: %v", out.Sessions, err)
	}
}

func TestAPurgeTakesTheWordsOfATurnOutOfTheIndex(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "s1", "the password hint is marzipan", "make hint", "Noted.", true)
	turn(b, "s2", "bake a cake", "make cake", "Baked.", true)
	out, err := forget.Purge(t.Context(), b.Service, forget.PurgeArgs{Search: "marzipan", Confirm: true})
	if err != nil || out.Rows != 1 {
		t.Fatalf("purged %d: %v", out.Rows, err)
	}
	held := func() (n int) {
		if err := b.Store.Read(t.Context(), scalar(&n, `SELECT count(*) FROM turn_vocabulary WHERE term = 'marzipan'`)); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if held() != 0 {
		t.Error("the index still has the word")
	}
	if _, err := b.IndexTurns(t.Context(), 1000); err != nil || held() != 0 {
		t.Errorf("the index has the word again: %v", err)
	}
	if got, _ := recalls(b, "what was noted about the hint"); len(got) != 1 || got[0] != "s1" {
		t.Errorf("the rest of the turn: %v", got)
	}
}

func TestAReindexRestoresTheTurns(t *testing.T) {
	t.Parallel()
	b := observationtest.New(t)
	turn(b, "s1", "sharpen the sextant", "make sextant", "Sharp.", true)
	if err := b.Store.Write(t.Context(), store.Normal, execute(`DELETE FROM turn_words`, `DELETE FROM turns`)); err != nil {
		t.Fatal(err)
	}
	if found, err := integrity.Check(t.Context(), b.Service); err != nil || len(found) == 0 {
		t.Errorf("check says %v: %v", found, err)
	}
	if err := integrity.Reindex(t.Context(), b.Service, nil); err != nil {
		t.Fatal(err)
	}
	if got, _ := recalls(b, "sextant"); len(got) != 1 || got[0] != "s1" {
		t.Errorf("found %v", got)
	}
}

func scalar(n *int, query string) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error { return tx.Get(ctx, []any{n}, query) }
}

func execute(queries ...string) func(context.Context, *store.Tx) error {
	return func(ctx context.Context, tx *store.Tx) error {
		for _, q := range queries {
			if _, err := tx.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	}
}
