package observation

import (
	"slices"
	"strings"
	"testing"
)

func sessionIDs(all []RecalledSession) (ids []string) {
	for _, s := range all {
		ids = append(ids, s.SessionID)
	}
	return ids
}

func TestASessionIsFoundByWordsOfTheSameMeaning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.turn("archive", "delete the archive of the harbour after a month", "rm -r harbour", "The archive is deleted.", true)
	b.turn("galley", "the soup recipe burns", "grep -rn simmer .", "Simmering is lower now.", true)
	ask := func(a RecallArgs) Recalled {
		out, err := b.Recall(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const question = "who removed our repository?"
	if out := ask(RecallArgs{Query: question}); out.Matched == MatchedWords {
		t.Errorf("without similar words the answer is %+v", out)
	}
	out := ask(RecallArgs{Query: question, Similar: 5})
	if got := sessionIDs(out.Sessions); out.Matched != MatchedWords || len(got) != 1 || got[0] != "archive" {
		t.Fatalf("found %v: %+v", got, out)
	}
	if item := out.Sessions[0].Items[0]; item.Matched != MatchedSimilar || !strings.Contains(item.Excerpt, "archive") || len(item.Marks) == 0 {
		t.Errorf("its best row is %+v", item)
	}
	out = ask(RecallArgs{Query: question, Words: "soup", Similar: 5})
	if got := sessionIDs(out.Sessions); len(got) != 1 || got[0] != "galley" || len(out.Similar) > 0 {
		t.Errorf("with the words of the agent: %v, and by similar words %v", got, sessionIDs(out.Similar))
	}
}

func TestAQuestionThatATurnHoldsNeedsNoSimilarWords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.turn("beacon", "make the beacon blink slower", "go test ./beacon", "It blinks slower.", true)
	out, err := b.Recall(t.Context(), RecallArgs{Query: "why does the beacon blink slower?", Similar: 5})
	if err != nil || len(out.Similar) > 0 || len(out.Sessions) != 1 {
		t.Errorf("found %v, and by similar words %v: %v", sessionIDs(out.Sessions), sessionIDs(out.Similar), err)
	}
}

func TestOfFiveSessionsThreeHoldTheQuestionsOwnWords(t *testing.T) {
	t.Parallel()
	list := func(ids string) (all []RecalledSession) {
		for id := range strings.FieldsSeq(ids) {
			all = append(all, RecalledSession{SessionID: id})
		}
		return all
	}
	for _, c := range []struct {
		own, similar string
		limit        int
		want         string
	}{
		{"a b c d e", "", 5, "a b c d e"},
		{"a b c d e", "x a y z", 5, "a b c x y"},
		{"a b c d e", "c", 5, "a b c d e"},
		{"a b", "x y z v", 5, "a b x y z"},
		{"a b", "x", 1, "a"},
		{"", "x y", 5, "x y"},
	} {
		got := sessionIDs(WithSimilar(list(c.own), list(c.similar), c.limit))
		if want := strings.Fields(c.want); !slices.Equal(got, want) {
			t.Errorf("%q and %q become %v, want %v", c.own, c.similar, got, want)
		}
	}
}
