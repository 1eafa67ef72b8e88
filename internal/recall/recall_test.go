package recall

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Of two parts, items with all words come first, then items of this project, then newer
// ones.
func TestRankingsOfPartsAreFusedByPlace(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	hit := func(id, project string, shared, weight float64, n int) partHit {
		return partHit{Item: Item{ID: id, Project: project, When: day(n)}, shared: shared, weight: weight}
	}
	found := fusePart(PartRecords, "shop", []partHit{
		hit("half", "", 0.5, 0, 1), hit("second", "", 1, -1, 9), hit("elsewhere", "bank", 1, 0, 8),
		hit("older", "shop", 1, 0, 1), hit("newer", "shop", 1, 0, 2), hit("little", "", 0.1, 0, 1),
	}, 5)
	var ids []string
	for i, f := range found {
		ids = append(ids, f.ID+" "+f.Matched)
		if f.Part != PartRecords || i > 0 && f.score >= found[i-1].score {
			t.Errorf("%d: %+v", i, f)
		}
	}
	if want := []string{"newer all", "older all", "elsewhere all", "second all", "half some"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
	if last := fusePart(PartMail, "", slices.Repeat([]partHit{hit("", "", 1, 0, 1)}, 60), 60)[59]; last.score <= found[4].score {
		t.Errorf("the sixtieth with all words, %v, is behind the best with half of them, %v", last.score, found[4].score)
	}
	if in := fusePart(PartMemories, "shop", []partHit{hit("", "shop/main", 1, 0, 1), hit("", "shopping/main", 1, 0, 1)}, 2); !in[0].here || in[1].here {
		t.Errorf("of this project: %+v", in)
	}
}

func TestShareCountsTheWordsOfAQuestionWithoutStopWords(t *testing.T) {
	t.Parallel()
	for _, q := range []struct {
		query, words, text string
		share              float64
	}{
		{"when is the expiry of a refund", "", "When do refunds expire? The expiry is near.", 1},
		{"refund expiry", "", "a refund", 0.5},
		{"refund expiry", "", "lunch", 0},
		{"getUserById", "", "the user of that id: getUserById", 1},
		{`"refund expiry"`, "", "lunch", 1}, // the part matched it
		{"refund OR expiry", "", "lunch", 1},
		{"refund refund", "", "refund", 1},
		{"refund expiry date", "ledger utc", "UTC ledgers", 1},
	} {
		r := newSearch(nil, Args{Query: q.query, Words: q.words})
		if got := r.share(q.text); got != q.share {
			t.Errorf("%q in %q: %v, want %v", q.query, q.text, got, q.share)
		}
	}
}

// The answer has groups of many long items, one with extreme sizes.
func TestAnAnswerStaysWithinItsTokens(t *testing.T) {
	t.Parallel()
	for detail, limit := range map[string]int{"": briefTokens, DetailFull: fullTokens} {
		var r Answer
		for range 40 {
			g := Group{SessionID: strings.Repeat("s", 36), About: strings.Repeat("a", maxLine), Branch: strings.Repeat("b", maxLine)}
			for range maxItems {
				g.Items = append(g.Items, Item{Part: PartObservations, ID: "1234567", Excerpt: strings.Repeat("ж", excerptChars), Matched: MatchedSome})
			}
			r.Results = append(r.Results, g)
		}
		all := r.Results
		for _, sessions := range []int{1, 5, 40} {
			r.Results = all
			whole := tokens(r.Text())
			r.fit(detail, sessions)
			if n, most := tokens(r.Text()), limit*max(sessions, 5); n > most || n < min(most, whole)/3 {
				t.Errorf("%q, %d sessions: %d tokens of %d, %d before", detail, len(r.Results), n, most, whole)
			}
		}
	}
}
