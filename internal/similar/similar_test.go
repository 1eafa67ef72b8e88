package similar

import (
	"slices"
	"testing"

	"cairn/internal/words"
)

func TestNeighboursAreStemsSortedByLikeness(t *testing.T) {
	t.Parallel()
	all := load()
	if !slices.IsSorted(all.keys) {
		t.Error("words.txt is not sorted")
	}
	end := 0
	for i, key := range all.keys {
		end = int(all.starts[i]) + 1 + neighbourSize*int(neighbours[all.starts[i]])
		near := Words(key)
		if len(near) == 0 || len(near) > 12 {
			t.Errorf("%q has %d neighbours", key, len(near))
		}
		last := 1.0
		for _, w := range near {
			if w.Key == key || w.Likeness > last || w.Likeness < 0.49 {
				t.Errorf("%q: neighbour %v after %v", key, w, last)
			}
			last = w.Likeness
		}
	}
	if end != len(neighbours) {
		t.Errorf("near.bin has %d bytes, its entries %d", len(neighbours), end)
	}
}

func TestWordsOfOneMeaningAreNeighbours(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{"repository": "archive", "delete": "remove", "error": "mistake", "quick": "fast"} {
		near := Words(words.Key(word))
		if !slices.ContainsFunc(near, func(w Word) bool { return w.Key == words.Key(want) }) {
			t.Errorf("%q is no neighbour of %q: %v", want, word, near)
		}
	}
	if near := Words("qzxv"); near != nil {
		t.Errorf("an unknown word has the neighbours %v", near)
	}
}

func BenchmarkWords(b *testing.B) {
	key := words.Key("delete")
	for b.Loop() {
		Words(key)
	}
}
