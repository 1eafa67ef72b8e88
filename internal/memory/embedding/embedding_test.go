package embedding_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"cairn/internal/memory/embedding"
)

func TestBrokenResponsesAreErrors(t *testing.T) {
	t.Parallel()
	for name, response := range map[string]string{
		"no JSON": `<html>`, "none": `{}`, "too few": `{"data":[{"index":0,"embedding":[1]}]}`, "empty": `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}`,
		"of two dimensions": `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, "out of range": `{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(response)) }))
		e := embedding.New(s.URL+"/v1/embeddings", "m")
		if v, err := e.Vectors(t.Context(), []string{"a", "b"}); err == nil {
			t.Errorf("%s: %v", name, v)
		}
		s.Close()
	}
}

func TestOllamaGetsOneTextPerRequest(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Model, Prompt string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || body.Model != "m" || body.Prompt == "no" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"embedding":[%d, 1]}`, len(body.Prompt))
	}))
	defer s.Close()
	e := embedding.New(s.URL+"/api/embeddings/", "m")
	v, err := e.Vectors(t.Context(), []string{"a", "abc"})
	if err != nil || fmt.Sprint(v) != "[[1 1] [3 1]]" {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := e.Vectors(t.Context(), []string{"a", "no"}); !errors.Is(err, embedding.ErrRefused) {
		t.Errorf("a refused text: %v", err)
	}
	if c := embedding.Cosine([]float32{1, 0}, embedding.Bytes([]float32{1, 0})); c != 1 {
		t.Errorf("cosine of equal vectors: %v", c)
	}
	if c := embedding.Cosine([]float32{1, 0}, embedding.Bytes([]float32{1})); c != 0 {
		t.Errorf("cosine of vectors of two dimensions: %v", c)
	}
}
