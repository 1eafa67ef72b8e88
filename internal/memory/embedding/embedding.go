// Package embedding gets vectors of texts from an embedder over HTTP and compares them.
package embedding

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
)

// timeout limits one request (memories §11).
const timeout = 10 * time.Second

// Client asks one embedder for vectors. It is safe for concurrent use.
type Client struct {
	Model string

	url    string
	ollama bool // the API is Ollama's /api/embeddings, with one text per request
	client *http.Client
}

// New returns the client of the embedder at an URL; nil for "".
func New(address, model string) *Client {
	if address == "" {
		return nil
	}
	at, err := url.Parse(address)
	return &Client{
		url: address, Model: model, ollama: err == nil && strings.HasSuffix(strings.TrimRight(at.Path, "/"), "/api/embeddings"),
		client: &http.Client{Timeout: timeout, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}},
	}
}

// Vectors returns the vectors of texts, in their order, all of one dimension. It returns
// [ErrRefused] if the embedder does not accept a text.
func (c *Client) Vectors(ctx context.Context, texts []string) (all [][]float32, err error) {
	if c.ollama {
		for _, text := range texts {
			var response struct {
				Embedding []float32 `json:"embedding"`
			}
			if err := c.post(ctx, map[string]any{"model": c.Model, "prompt": text}, &response); err != nil {
				return nil, err
			}
			all = append(all, response.Embedding)
		}
		return all, usable(all, len(texts))
	}
	var response struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := c.post(ctx, map[string]any{"model": c.Model, "input": texts}, &response); err != nil {
		return nil, err
	}
	all = make([][]float32, len(texts))
	for _, d := range response.Data {
		if d.Index >= 0 && d.Index < len(all) {
			all[d.Index] = d.Embedding
		}
	}
	return all, usable(all, len(texts))
}

// usable returns an error for vectors that are missing, empty or of several dimensions.
func usable(all [][]float32, wanted int) error {
	if len(all) != wanted || wanted == 0 {
		return fmt.Errorf("the embedder returned vectors for %d of %d texts", len(all), wanted)
	}
	for _, v := range all {
		if len(v) == 0 || len(v) != len(all[0]) {
			return errors.New("the embedder's vectors are empty or of several dimensions")
		}
	}
	return nil
}

// ErrRefused is the error for texts that the embedder does not accept, now or later.
var ErrRefused = errors.New("the embedder refuses the text")

// ProbeText is a text that every embedder accepts.
const ProbeText = "dimension"

// maxResponse limits the bytes read of a response.
const maxResponse = 64 << 20

func (c *Client) post(ctx context.Context, body, response any) (err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return fmt.Errorf("%w: it returned %s", ErrRefused, resp.Status)
	default:
		return fmt.Errorf("the embedder returned %s", resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxResponse)).Decode(response)
}

// Bytes returns a vector in its stored form.
func Bytes(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// Cosine returns the cosine similarity of v and a stored vector, 0–1. It is 0 for a vector of
// another dimension.
func Cosine(v []float32, stored []byte) float64 {
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
