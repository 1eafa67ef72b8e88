package main

import (
	"errors"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/mail/messages"
	"cairn/internal/store"
)

// TestALedgerFindsWhatAStoreHasLost compares correct and incorrect ledgers with a store.
func TestALedgerFindsWhatAStoreHasLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Config{Path: filepath.Join(dir, "cairn.db"), Role: store.Server})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	office, root, names, err := new(bench).office(t.Context(), s, filepath.Join(dir, "work"), 2)
	if err != nil {
		t.Fatal(err)
	}
	sent, err := office.SendMessage(t.Context(), ownerOf(root), messages.SendArgs{ProjectKey: root, SenderName: names[0], To: names[1:], Subject: "one"})
	if err != nil {
		t.Fatal(err)
	}
	id := sent.Deliveries[0].Payload.ID
	one := ledgerMessage{id, "one"}
	for what, c := range map[string]struct {
		ledger      mailLedger
		lost, twice int
	}{
		"all there":                 {mailLedger{messages: []ledgerMessage{one}}, 0, 0},
		"a message is missing":      {mailLedger{messages: []ledgerMessage{one, {id + 1, "two"}}}, 1, 0},
		"a message says other":      {mailLedger{messages: []ledgerMessage{{id, "two"}}}, 1, 0},
		"a number given twice":      {mailLedger{messages: []ledgerMessage{one, one}}, 0, 1},
		"nobody acknowledged":       {mailLedger{acknowledged: []int64{id}}, 1, 0},
		"nothing is reserved, ever": {mailLedger{reserved: []int64{1, 1}}, 2, 1},
	} {
		lost, twice, err := c.ledger.lost(t.Context(), s)
		if err != nil || lost != c.lost || twice != c.twice {
			t.Errorf("%s: %d lost, %d twice, %v", what, lost, twice, err)
		}
	}
	if _, err := office.AcknowledgeMessage(t.Context(), ownerOf(root), root, names[1], id); err != nil {
		t.Fatal(err)
	}
	acknowledged := mailLedger{acknowledged: []int64{id}}
	if lost, _, err := acknowledged.lost(t.Context(), s); err != nil || lost != 0 {
		t.Errorf("acknowledged: %d lost, %v", lost, err)
	}
}

func TestAnswersOfMCPAreResultsOrRefusals(t *testing.T) {
	t.Parallel()
	const result = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"id\":5}"}]}}`
	for text, want := range map[string]bool{
		result: true,
		": beat\n\nevent: message\ndata: {\"method\":\"notifications/x\"}\n\nevent: message\ndata: " + result + "\n\n": true,
		`{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[{"type":"text","text":"{}"}]}}`:                   false,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`:                                              false,
		`<html>`: false,
	} {
		var out struct{ ID int }
		if err := readMCP([]byte(text), &out); (err == nil) != want || want && out.ID != 5 {
			t.Errorf("%s: %v, %v", text, out, err)
		}
	}
	if refused, ok := errors.AsType[*mailRefusal](readMCP([]byte(`{"id":1,"error":{}}`), nil)); !ok || refused.status != http.StatusOK {
		t.Errorf("%v", refused)
	}
}

// TestBenchmarksOfGoAreRead finds every benchmark that has a limit by its name.
func TestBenchmarksOfGoAreRead(t *testing.T) {
	t.Parallel()
	found, err := readBenchmarks("goos: linux\nBenchmarkReserve-2   \t 200\t 5223920 ns/op\t 3.974 p50-ms\t 11.99 p99-ms\n" +
		"BenchmarkAmongManyMessages/search-two-common-16 100 41387915 ns/op 33.77 p50-ms 117.2 p99-ms\nBenchmarkX/inbox 1 1 ns/op\nPASS\n")
	if err != nil || found["Reserve"].calls != 200 || found["Reserve"].figures["p50-ms"] != 3.974 || found["AmongManyMessages/search-two-common"].figures["p99-ms"] != 117.2 || found["X/inbox"].calls != 1 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := readBenchmarks("BenchmarkReserve 200 x p99-ms\n"); err == nil {
		t.Error("read what is no number")
	}
	room := filepath.Join("..", "internal", "mail", "service")
	var source strings.Builder
	for _, name := range []string{"crowded_test.go", "guard_test.go", "reserve_test.go"} {
		text, err := os.ReadFile(filepath.Join(room, name))
		if err != nil {
			t.Fatal(err)
		}
		source.Write(text)
	}
	for _, bar := range mailBars() {
		top, sub, _ := strings.Cut(bar.benchmark, "/")
		if !strings.Contains(source.String(), "func Benchmark"+top+"(") || sub != "" && !strings.Contains(source.String(), `"`+sub+`"`) {
			t.Errorf("there is no benchmark %s", bar.benchmark)
		}
	}
}

func TestMemoryGrowsByTheLineThroughItsPoints(t *testing.T) {
	t.Parallel()
	if got := slope([]float64{0, 1, 2, 3}, []float64{10, 12.5, 14.5, 17}); math.Abs(got-2.3) > 1e-9 {
		t.Error(got)
	}
	if got := slope([]float64{1, 1}, []float64{3, 4}); got != 0 {
		t.Error(got)
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("nothing tells of processes here")
	}
	for end := time.Now().Add(10 * time.Second); ; {
		if used, err := cpuOf(os.Getpid()); err != nil || used > 0 {
			if err != nil {
				t.Error(err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("no processor time used in ten seconds of work")
		}
	}
	if f, err := processFields(os.Getpid(), "statm"); err != nil || len(f) < 2 || f[1] <= 0 {
		t.Errorf("%v, %v", f, err)
	}
	if used, all := machineTime(); used <= 0 || all < used {
		t.Error(used, all)
	}
}
