package cairn

import (
	"slices"
	"testing"
	"time"

	"cairn/internal/words"
)

// TestRankingsAreFusedByPlaces has two parts: what has all words leads each, then what
// is of this project and what is newer.
func TestRankingsAreFusedByPlaces(t *testing.T) {
	t.Parallel()
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	found := fused(PartRecords, "shop", []FoundAnywhere{
		{ID: "half", shared: 0.5, weight: 0},
		{ID: "second", shared: 1, weight: -1, When: day(9)},
		{ID: "elsewhere", shared: 1, weight: 0, When: day(8), Project: "bank"},
		{ID: "older", shared: 1, weight: 0, When: day(1), Project: "shop"},
		{ID: "newer", shared: 1, weight: 0, When: day(2), Project: "shop"},
		{ID: "beyond", shared: 0.1, weight: 0},
	}, 5)
	var ids []string
	for i, f := range found {
		ids = append(ids, f.ID)
		if f.Part != PartRecords || i > 0 && f.Score >= found[i-1].Score {
			t.Errorf("%d: %+v", i, f)
		}
	}
	if want := []string{"newer", "older", "elsewhere", "second", "half"}; !slices.Equal(ids, want) {
		t.Errorf("%v, want %v", ids, want)
	}
	if last := fused(PartMail, "", slices.Repeat([]FoundAnywhere{{shared: 1}}, 60), 60)[59]; last.Score <= found[4].Score {
		t.Errorf("the sixtieth with all words, %v, is behind the best with half of them, %v", last.Score, found[4].Score)
	}
	if in := fused(PartMemories, "shop", []FoundAnywhere{{Project: "shop/main", shared: 1}, {Project: "shopping/main", shared: 1}}, 2); !in[0].here || in[1].here {
		t.Errorf("of this project: %+v", in)
	}
}

func TestSharesOfAQuestionAreOfItsWords(t *testing.T) {
	t.Parallel()
	for _, q := range []struct {
		query, text string
		share       float64
	}{
		{"refund expiry", "When do refunds expire? The expiry is near.", 1},
		{"refund expiry", "a refund", 0.5},
		{"refund expiry", "lunch", 0},
		{"getUserById", "the user of that id: getUserById", 1},
		{`"refund expiry"`, "lunch", 1}, // the part has judged
		{"refund OR expiry", "lunch", 1},
		{"refund refund", "refund", 1},
		{"auto-commit refund - date", "the date of a refund", 0.5},
	} {
		s := searchingAll{wanted: stemsOf(q.query), plain: words.IsPlain(q.query)}
		if got := s.share(q.text); got != q.share {
			t.Errorf("%q in %q: %v, want %v", q.query, q.text, got, q.share)
		}
	}
}
