package memory

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cairn/internal/fault"
)

// embedTimeout is how long an embedder has for one request (memories §11).
const embedTimeout = 10 * time.Second

// embedder makes vectors of texts, by HTTP.
type embedder struct {
	url, model string
	ollama     bool // the form of Ollama's /api/embeddings, one text at a time
	client     *http.Client
}

// newEmbedder is nil where none is set.
func newEmbedder(s Settings) *embedder {
	if s.EmbedURL == "" {
		return nil
	}
	at, err := url.Parse(s.EmbedURL)
	return &embedder{
		url: s.EmbedURL, model: s.EmbedModel, ollama: err == nil && strings.HasSuffix(strings.TrimRight(at.Path, "/"), "/api/embeddings"),
		client: &http.Client{Timeout: embedTimeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}},
	}
}

// embed makes the vectors of texts, in their order, all of one dimension.
func (e *embedder) embed(ctx context.Context, texts []string) (all [][]float32, err error) {
	if e.ollama {
		for _, text := range texts {
			var answer struct {
				Embedding []float32 `json:"embedding"`
			}
			if err := e.post(ctx, map[string]any{"model": e.model, "prompt": text}, &answer); err != nil {
				return nil, err
			}
			all = append(all, answer.Embedding)
		}
		return all, usable(all, len(texts))
	}
	var answer struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := e.post(ctx, map[string]any{"model": e.model, "input": texts}, &answer); err != nil {
		return nil, err
	}
	all = make([][]float32, len(texts))
	for _, d := range answer.Data {
		if d.Index >= 0 && d.Index < len(all) {
			all[d.Index] = d.Embedding
		}
	}
	return all, usable(all, len(texts))
}

// usable refuses vectors that are missing, empty or of several dimensions.
func usable(all [][]float32, wanted int) error {
	if len(all) != wanted || wanted == 0 {
		return fmt.Errorf("the embedder answered %d of %d texts", len(all), wanted)
	}
	for _, v := range all {
		if len(v) == 0 || len(v) != len(all[0]) {
			return errors.New("the embedder's vectors are empty or of several dimensions")
		}
	}
	return nil
}

// errRefused is for texts that the embedder will not take, now or later.
var errRefused = errors.New("the embedder refuses the text")

// probeText is a text that every embedder takes.
const probeText = "dimension"

// maxAnswer bounds what is read of an embedder's answer.
const maxAnswer = 64 << 20

func (e *embedder) post(ctx context.Context, body, answer any) (err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := e.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: it answered %s", errRefused, resp.Status)
	default:
		return fmt.Errorf("the embedder answered %s", resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(answer)
}

// wantsVector reports whether a search is to ask the embedder.
func (b *Service) wantsVector(a SearchArgs) bool {
	return a.Mode == ModeHybrid || a.Mode != ModeLexical && b.embedder != nil && b.config.Settings.SearchAlpha > 0
}

// queryVector is the vector of a query, nil if there is none and the search goes by
// words. CodeSearchUnavailable (Unavailable) if ModeHybrid was asked for.
func (b *Service) queryVector(ctx context.Context, a SearchArgs) ([]float32, error) {
	err := errors.New("memory.embed_url is not set")
	var all [][]float32
	if b.embedder != nil {
		if all, err = b.embedder.embed(ctx, []string{a.Query}); err == nil {
			return all[0], nil
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if a.Mode != ModeHybrid {
		b.fellBack("embedder_failed")
		return nil, nil
	}
	f := fault.Wrap(err, fault.Unavailable, CodeSearchUnavailable, "a search by vectors is not possible now: the embedder is missing or does not answer").
		WithHint("search with mode auto or lexical, or check memory.embed_url")
	f.Details = map[string]any{}
	return nil, f
}

// vectorBytes is a vector as it is stored.
func vectorBytes(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// cosine is how much a stored vector looks where v does, 0–1; 0 for one of another
// dimension.
func cosine(v []float32, stored []byte) float64 {
	if len(stored) != 4*len(v) {
		return 0
	}
	var dot, a, b float64
	for i, x := range v {
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(stored[4*i:])))
		dot, a, b = dot+float64(x)*y, a+float64(x)*float64(x), b+y*y
	}
	c := dot / math.Sqrt(a*b)
	if math.IsNaN(c) {
		return 0
	}
	return min(max(c, 0), 1)
}
