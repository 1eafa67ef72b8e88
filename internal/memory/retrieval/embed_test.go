package retrieval_test

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/retrieval"
	"cairn/internal/memory/rules"
)

// testEmbedder distinguishes animals from machines, over HTTP.
type testEmbedder struct {
	*httptest.Server
	mu        sync.Mutex
	broken    bool
	dimension int
	asked     int
}

func newTestEmbedder(t testing.TB) *testEmbedder {
	e := &testEmbedder{dimension: 2}
	e.Server = httptest.NewServer(http.HandlerFunc(e.answer))
	t.Cleanup(e.Close)
	return e
}

func (e *testEmbedder) set(broken bool, dimension int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.broken, e.dimension = broken, dimension
}

func (e *testEmbedder) vector(text string) []float32 {
	v := make([]float32, e.dimension)
	for i, word := range []string{"cat dog fur animal", "engine wheel machine car"} {
		for w := range strings.FieldsSeq(word) {
			if strings.Contains(text, w) {
				v[i]++
			}
		}
	}
	v[1] += 0.001
	return v
}

func (e *testEmbedder) answer(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	var body struct {
		Model, Prompt string
		Input         []string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || e.broken || body.Model == "" {
		http.Error(w, "no", http.StatusInternalServerError)
		return
	}
	var out any
	if r.URL.Path == "/api/embeddings" {
		out = map[string]any{"embedding": e.vector(body.Prompt)}
	} else {
		var data []any
		for i := range body.Input { // in another order, which the index field shows
			at := len(body.Input) - 1 - i
			data = append(data, map[string]any{"index": at, "embedding": e.vector(body.Input[at])})
		}
		out = map[string]any{"data": data}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// embedded returns a desk with an embedder, with all vectors computed.
func embedded(t *testing.T, path string, change ...func(*memory.Settings)) (*memorytest.Desk, *testEmbedder) {
	e := newTestEmbedder(t)
	d := memorytest.NewDesk(t, func(c *memory.Config) {
		c.Settings.EmbedURL = e.URL + path
		for _, f := range change {
			f(&c.Settings)
		}
	})
	for _, text := range []string{"the cat sleeps", "an engine starts", "a dog barks at the engine", "nothing of either"} {
		put(d, contents.NewEntry{RawEntry: text, SessionID: rules.NewID()})
	}
	embedNow(d)
	return d, e
}

func embedNow(d *memorytest.Desk) {
	d.Helper()
	if _, err := d.EmbedMissing(d.Context()); err != nil {
		d.Fatal(err)
	}
}

func TestVectorsFindWhatWordsDoNot(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/embeddings", "/api/embeddings"} {
		d, _ := embedded(t, path)
		f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "animal"}))(t)
		memorytest.Want(t, path+" mode", f.Mode, retrieval.ModeHybrid)
		memorytest.Want(t, path+" first", f.Entries[0].RawEntry, "the cat sleeps")
		memorytest.Want(t, path+" then", f.Entries[1].RawEntry, "a dog barks at the engine")
		f = memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "animal", Mode: retrieval.ModeLexical}))(t)
		memorytest.Want(t, path+" by words", f.Count, 0)
		memorytest.Want(t, path+" by words", f.Mode, retrieval.ModeLexical)
		memorytest.Want(t, path+" with a filter", found(d, retrieval.SearchArgs{Query: "animal", SessionID: rules.NewID()}), "")
	}
}

func TestAlphaWeighsWordsAgainstVectors(t *testing.T) {
	t.Parallel()
	scores := map[float64]map[string]float64{}
	for _, alpha := range []float64{0, 0.5, 1} {
		d, _ := embedded(t, "/v1/embeddings", func(s *memory.Settings) { s.SearchAlpha = alpha })
		scores[alpha] = map[string]float64{}
		f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "engine", Mode: retrieval.ModeHybrid}))(t)
		memorytest.Want(t, "mode", f.Mode, retrieval.ModeHybrid)
		for _, h := range f.Entries {
			scores[alpha][h.RawEntry] = h.Score
		}
		put(d, contents.NewEntry{RawEntry: "engine without a vector yet"})
		memorytest.Want(t, "is found as well", strings.Contains(found(d, retrieval.SearchArgs{Query: "engine"}), "without a vector"), true)
	}
	const text = "an engine starts"
	mean := (scores[0][text] + scores[1][text]) / 2
	memorytest.Want(t, "half way", math.Abs(scores[0.5][text]-mean) < 1e-9, true)
	memorytest.Want(t, "vector alone", scores[1][text] > 0.99 && scores[1][text] <= 1, true)
}

func TestAnEmbedderThatFailsCostsNoHit(t *testing.T) {
	t.Parallel()
	d, e := embedded(t, "/v1/embeddings")
	e.set(true, 2)
	f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "dogs", Mode: retrieval.ModeAuto}))(t)
	memorytest.Want(t, "mode", f.Mode, retrieval.ModeLexical)
	memorytest.Want(t, "hits", f.Entries[0].RawEntry, "a dog barks at the engine")
	_, err := d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "dogs", Mode: retrieval.ModeHybrid})
	memorytest.WantError(t, "hybrid", err, 503, memory.CodeSearchUnavailable)
	_, err = d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: rules.NewID(), Query: "dogs", Mode: retrieval.ModeHybrid})
	memorytest.WantError(t, "hybrid in no memory", err, 404, memory.CodeNotFound)
	e.Close()
	_, err = d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "dogs", Mode: retrieval.ModeHybrid})
	memorytest.WantError(t, "gone", err, 503, memory.CodeSearchUnavailable)
	without := memorytest.NewDesk(t)
	_, err = without.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: without.MemoryID, Query: "dogs", Mode: retrieval.ModeHybrid})
	memorytest.WantError(t, "none set", err, 503, memory.CodeSearchUnavailable)
}

func TestVectorsOfAnotherModelOrDimensionAreReplaced(t *testing.T) {
	t.Parallel()
	d, e := embedded(t, "/v1/embeddings")
	count := func(model string, bytes int) (n int) {
		d.Query(&n, `SELECT count(*) FROM memory_vectors WHERE model = ? AND length(vector) = ?`, model, bytes)
		return n
	}
	memorytest.Want(t, "at first", count("nomic-embed-text", 8), 4)
	e.set(false, 3)
	embedNow(d)
	memorytest.Want(t, "of another dimension", count("nomic-embed-text", 12), 4)
	d.SetModel("other")
	memorytest.Want(t, "no vector of the model is no vector", found(d, retrieval.SearchArgs{Query: "animal", Mode: retrieval.ModeHybrid}), "")
	embedNow(d)
	memorytest.Want(t, "of another model", count("other", 12), 4)
}

func TestAChangedEntryLosesItsVectorAndADeletedOneStaysAway(t *testing.T) {
	t.Parallel()
	d, _ := embedded(t, "/v1/embeddings")
	cat := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: d.MemoryID}))(t).Entries[3]
	summary := "about a car"
	todo := memorytest.Must(d.Unembedded(t.Context(), 9))(t) // as with another dimension: all of them
	if _, _, err := d.PatchEntry(t.Context(), memory.Caller{}, d.MemoryID, cat.EntryID, entries.Patch{Summary: &summary}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.EmbedRows(t.Context(), todo); err != nil { // it started before the patch
		t.Fatal(err)
	}
	var n int
	d.Query(&n, `SELECT count(*) FROM memory_vectors`)
	memorytest.Want(t, "vectors after a patch", n, 3)
	embedNow(d)
	f := memorytest.Must(d.Search(t.Context(), memory.Caller{}, retrieval.SearchArgs{MemoryID: d.MemoryID, Query: "machine"}))(t)
	memorytest.Want(t, "by the summary", f.Entries[0].RawEntry == cat.RawEntry || f.Entries[1].RawEntry == cat.RawEntry, true)
	todo = memorytest.Must(d.Unembedded(t.Context(), 9))(t)
	if _, err := d.DeleteEntry(t.Context(), memory.Caller{}, d.MemoryID, cat.EntryID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.EmbedRows(t.Context(), todo); err != nil { // it started before the delete
		t.Fatal(err)
	}
	d.Query(&n, `SELECT count(*) FROM memory_vectors`)
	memorytest.Want(t, "vectors after a delete", n, 3)
}

func TestTheFollowerEmbedsWhatWasThereAndWhatComes(t *testing.T) {
	t.Parallel()
	d, _ := embedded(t, "/v1/embeddings")
	d.Exec(`DELETE FROM memory_vectors`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Embed(ctx) }()
	has := func(vectors int) {
		t.Helper()
		for n := -1; n != vectors; {
			if d.Query(&n, `SELECT count(*) FROM memory_vectors`); t.Context().Err() != nil {
				t.Fatal("the follower did not embed")
			}
		}
	}
	has(4)
	put(d, contents.NewEntry{RawEntry: "one more wheel"})
	has(5)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	memorytest.Want(t, "without an embedder", memorytest.NewDesk(t).Embed(t.Context()), nil)
}
