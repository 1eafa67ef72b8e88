package memory

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"cairn/internal/fault"
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
func embedded(t *testing.T, path string, change ...func(*Settings)) (*desk, *testEmbedder) {
	e := newTestEmbedder(t)
	d := newDesk(t, func(c *Config) {
		c.Settings.EmbedURL = e.URL + path
		for _, f := range change {
			f(&c.Settings)
		}
	})
	for _, text := range []string{"the cat sleeps", "an engine starts", "a dog barks at the engine", "nothing of either"} {
		d.put(NewEntry{RawEntry: text, SessionID: rules.NewID()})
	}
	d.embedNow()
	return d, e
}

func (d *desk) embedNow() {
	d.Helper()
	if _, err := d.embedMissing(d.Context()); err != nil {
		d.Fatal(err)
	}
}

func TestVectorsFindWhatWordsDoNot(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/embeddings", "/api/embeddings"} {
		d, _ := embedded(t, path)
		f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "animal"}))(t)
		want(t, path+" mode", f.Mode, ModeHybrid)
		want(t, path+" first", f.Entries[0].RawEntry, "the cat sleeps")
		want(t, path+" then", f.Entries[1].RawEntry, "a dog barks at the engine")
		f = must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "animal", Mode: ModeLexical}))(t)
		want(t, path+" by words", f.Count, 0)
		want(t, path+" by words", f.Mode, ModeLexical)
		want(t, path+" with a filter", d.found(SearchArgs{Query: "animal", SessionID: rules.NewID()}), "")
	}
}

func TestAlphaWeighsWordsAgainstVectors(t *testing.T) {
	t.Parallel()
	scores := map[float64]map[string]float64{}
	for _, alpha := range []float64{0, 0.5, 1} {
		d, _ := embedded(t, "/v1/embeddings", func(s *Settings) { s.SearchAlpha = alpha })
		scores[alpha] = map[string]float64{}
		f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "engine", Mode: ModeHybrid}))(t)
		want(t, "mode", f.Mode, ModeHybrid)
		for _, h := range f.Entries {
			scores[alpha][h.RawEntry] = h.Score
		}
		d.put(NewEntry{RawEntry: "engine without a vector yet"})
		want(t, "is found as well", strings.Contains(d.found(SearchArgs{Query: "engine"}), "without a vector"), true)
	}
	const text = "an engine starts"
	mean := (scores[0][text] + scores[1][text]) / 2
	want(t, "half way", math.Abs(scores[0.5][text]-mean) < 1e-9, true)
	want(t, "vector alone", scores[1][text] > 0.99 && scores[1][text] <= 1, true)
}

func TestAnEmbedderThatFailsCostsNoHit(t *testing.T) {
	t.Parallel()
	d, e := embedded(t, "/v1/embeddings")
	e.set(true, 2)
	f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "dogs", Mode: ModeAuto}))(t)
	want(t, "mode", f.Mode, ModeLexical)
	want(t, "hits", f.Entries[0].RawEntry, "a dog barks at the engine")
	_, err := d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "dogs", Mode: ModeHybrid})
	wantError(t, "hybrid", err, 503, CodeSearchUnavailable)
	_, err = d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: rules.NewID(), Query: "dogs", Mode: ModeHybrid})
	wantError(t, "hybrid in no memory", err, 404, CodeNotFound)
	e.Close()
	_, err = d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "dogs", Mode: ModeHybrid})
	wantError(t, "gone", err, 503, CodeSearchUnavailable)
	without := newDesk(t)
	_, err = without.Search(t.Context(), Caller{}, SearchArgs{MemoryID: without.memory, Query: "dogs", Mode: ModeHybrid})
	wantError(t, "none set", err, 503, CodeSearchUnavailable)
}

func TestVectorsOfAnotherModelOrDimensionAreReplaced(t *testing.T) {
	t.Parallel()
	d, e := embedded(t, "/v1/embeddings")
	count := func(model string, bytes int) (n int) {
		d.query(&n, `SELECT count(*) FROM memory_vectors WHERE model = ? AND length(vector) = ?`, model, bytes)
		return n
	}
	want(t, "at first", count("nomic-embed-text", 8), 4)
	e.set(false, 3)
	d.embedNow()
	want(t, "of another dimension", count("nomic-embed-text", 12), 4)
	d.embedder.Model = "other"
	want(t, "no vector of the model is no vector", d.found(SearchArgs{Query: "animal", Mode: ModeHybrid}), "")
	d.embedNow()
	want(t, "of another model", count("other", 12), 4)
}

func TestAChangedEntryLosesItsVectorAndADeletedOneStaysAway(t *testing.T) {
	t.Parallel()
	d, _ := embedded(t, "/v1/embeddings")
	cat := must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: d.memory}))(t).Entries[3]
	summary := "about a car"
	todo := must(d.unembedded(t.Context(), selectUnembedded, int64(0), 9))(t) // as with another dimension: all of them
	if _, _, err := d.PatchEntry(t.Context(), Caller{}, d.memory, cat.EntryID, Patch{Summary: &summary}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.embedRows(t.Context(), todo); err != nil { // it started before the patch
		t.Fatal(err)
	}
	var n int
	d.query(&n, `SELECT count(*) FROM memory_vectors`)
	want(t, "vectors after a patch", n, 3)
	d.embedNow()
	f := must(d.Search(t.Context(), Caller{}, SearchArgs{MemoryID: d.memory, Query: "machine"}))(t)
	want(t, "by the summary", f.Entries[0].RawEntry == cat.RawEntry || f.Entries[1].RawEntry == cat.RawEntry, true)
	todo = must(d.unembedded(t.Context(), selectUnembedded, int64(0), 9))(t)
	if _, err := d.DeleteEntry(t.Context(), Caller{}, d.memory, cat.EntryID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.embedRows(t.Context(), todo); err != nil { // it started before the delete
		t.Fatal(err)
	}
	d.query(&n, `SELECT count(*) FROM memory_vectors`)
	want(t, "vectors after a delete", n, 3)
}

func TestTheFollowerEmbedsWhatWasThereAndWhatComes(t *testing.T) {
	t.Parallel()
	d, _ := embedded(t, "/v1/embeddings")
	d.sql(`DELETE FROM memory_vectors`)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.Embed(ctx) }()
	has := func(vectors int) {
		t.Helper()
		for n := -1; n != vectors; {
			if d.query(&n, `SELECT count(*) FROM memory_vectors`); t.Context().Err() != nil {
				t.Fatal("the follower did not embed")
			}
		}
	}
	has(4)
	d.put(NewEntry{RawEntry: "one more wheel"})
	has(5)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	want(t, "without an embedder", newDesk(t).Embed(t.Context()), nil)
}

func TestSearchSettingsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Settings){
		"memory.search_alpha is 1.5":    func(s *Settings) { s.SearchAlpha = 1.5 },
		"memory.search_alpha is NaN":    func(s *Settings) { s.SearchAlpha = math.NaN() },
		`memory.embed_url "ftp://x/y"`:  func(s *Settings) { s.EmbedURL = "ftp://x/y" },
		`memory.embed_url "embeddings"`: func(s *Settings) { s.EmbedURL = "embeddings" },
	} {
		s := Defaults()
		change(&s)
		f := fault.As(s.Check())
		want(t, name, f != nil && f.Code == CodeSetting && strings.HasPrefix(f.Message, name), true)
	}
	want(t, "the defaults", Defaults().Check(), nil)
}
