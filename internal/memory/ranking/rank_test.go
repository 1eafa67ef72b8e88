package ranking

import (
	"strings"
	"testing"
)

func TestALongEntryIsNotPreferredForBeingAStatement(t *testing.T) {
	t.Parallel()
	q := Ask("refund")
	long := strings.Repeat("word ", shortEntry) + "end."
	if got := q.bonus(long, long, "", true, countWords(long)); got != 0 {
		t.Errorf("the bonus of %d words is %v", shortEntry+1, got)
	}
	if got := q.bonus("A short one.", "A short one.", "", true, 3); got != weightStatement {
		t.Errorf("the bonus of a short statement is %v", got)
	}
}
