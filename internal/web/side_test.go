package web

import (
	"testing"

	"cairn/internal/observation/browse"
	"cairn/internal/observation/ledger"
)

func row(id int64, at int64, obsType, content string, failed bool) browse.TraceRow {
	return browse.TraceRow{ID: id, Timestamp: at, ObsType: obsType, ContentPreview: content, Failed: failed}
}

func TestTheFirstPassAfterAFailureIsTheFix(t *testing.T) {
	t.Parallel()
	turns := []turn{
		{Actions: []browse.TraceRow{row(1, 1, "command", "go test", false), row(2, 2, "command_error", "go test\nFAIL", true)}},
		{Actions: []browse.TraceRow{row(3, 3, "command", "go vet", false), row(4, 4, "command", "go test", false), row(5, 5, "command", "go test", false)}},
	}
	if got := fixes(turns); len(got) != 1 || !got[4] {
		t.Errorf("fixed by %v", got)
	}
}

func TestTheStripHasEveryActionInsideItsBox(t *testing.T) {
	t.Parallel()
	var rows []browse.TraceRow
	for i := range int64(500) {
		rows = append(rows, row(i, 1000+i*i, "command", "x", false))
	}
	x := newAxis(1000, 1000+499*499, []browse.Span{{From: 1000, To: 1000 + 499*499}})
	list := columns(x, []turn{{Actions: rows}})
	highest := 0.0
	for _, c := range list {
		if c.X < 0 || c.X+c.Width > 100 || c.Y < 0 || c.Y+c.Height > 38.01 || c.Height < 2 {
			t.Errorf("a column outside: %+v", c)
		}
		highest = max(highest, c.Height)
	}
	if len(list) < 40 || highest != 26 {
		t.Errorf("%d columns, the highest %v", len(list), highest)
	}
	if got := columns(x, nil); len(got) != 0 {
		t.Errorf("without actions: %v", got)
	}
}

func TestInjectedItemsAreCountedBySection(t *testing.T) {
	t.Parallel()
	var p side
	p.addInjected([]ledger.Injected{
		{Section: "likely", Tokens: 10, Used: "file"}, {Section: "digest", Tokens: 60}, {Section: "likely", Tokens: 30},
	})
	if len(p.Injected) != 2 || p.Injected[0].Name != "digest" || p.Injected[1].Used != 1 || p.Injected[1].Tokens != 40 || p.Tokens != 100 || p.UsedPercent != 10 {
		t.Errorf("%+v", p)
	}
}
