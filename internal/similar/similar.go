package similar

import (
	_ "embed"
	"encoding/binary"
	"slices"
	"strings"
	"sync"
)

//go:embed words.txt
var wordList string

//go:embed near.bin
var neighbours string

// Word is a neighbour of a word.
type Word struct {
	Key      string  // stem, as words.Key returns it
	Likeness float64 // from 0.5 to 1
}

// table maps each word to the start of its neighbours in near.bin.
type table struct {
	keys   []string
	starts []int32
}

var load = sync.OnceValue(func() (t table) {
	t.keys = strings.Split(strings.TrimSuffix(wordList, "\n"), "\n")
	t.starts = make([]int32, len(t.keys))
	at := 0
	for i := range t.keys {
		t.starts[i] = int32(at)
		at += 1 + neighbourSize*int(neighbours[at])
	}
	return t
})

// neighbourSize is the number of bytes of a neighbour in near.bin.
const neighbourSize = 3

// Words returns the neighbours of a stem, the nearest first, at most 12. It returns nil for a stem
// that is not in the table. It is safe for concurrent use. The first call reads the table, which
// takes about 0.3 ms.
func Words(key string) []Word {
	t := load()
	i, ok := slices.BinarySearch(t.keys, key)
	if !ok {
		return nil
	}
	at := int(t.starts[i])
	near := []byte(neighbours[at+1 : at+1+neighbourSize*int(neighbours[at])])
	var out []Word
	for n := range slices.Chunk(near, neighbourSize) {
		out = append(out, Word{Key: t.keys[binary.BigEndian.Uint16(n)], Likeness: float64(n[2]) / 255})
	}
	return out
}
