package looks

import "testing"

func TestTheTableHasAnEntryForEachPairOfLetters(t *testing.T) {
	t.Parallel()
	if len(bigrams) != 26*26 {
		t.Errorf("%d bigrams", len(bigrams))
	}
}
