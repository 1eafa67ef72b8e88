package gosqlite_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"cairn/internal/store/gosqlite"
)

// Data written in pieces of any size reads back equally at any offset, padded to whole
// blocks. Equal blocks are encrypted differently at different offsets.
func TestBlocksReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{3}, gosqlite.KeySize)
	for _, size := range []int{0, 1, 512, 4095, 4096, 4097, 8192, 50_000} {
		held := bytes.Repeat([]byte("marzipan"), size/8+1)[:size]
		var file bytes.Buffer
		w := gosqlite.NewWriter(&file, key)
		for rest := held; len(rest) > 0; {
			n := min(len(rest), 1+rand.IntN(6000))
			if m, err := w.Write(rest[:n]); m != n || err != nil {
				t.Fatalf("%d of %d bytes: %v", m, n, err)
			}
			rest = rest[n:]
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := file.Len(); got != (size+4095)/4096*4096 || int64(got) != gosqlite.Whole(int64(got)) || gosqlite.Whole(int64(got)+4095) != int64(got) {
			t.Fatalf("%d bytes make a file of %d", size, got)
		}
		if bytes.Contains(file.Bytes(), []byte("marzipan")) || size >= 8192 && bytes.Equal(file.Bytes()[:4096], file.Bytes()[4096:8192]) {
			t.Errorf("%d bytes are not encrypted by their place", size)
		}
		r := gosqlite.NewReader(bytes.NewReader(file.Bytes()), key)
		for range 20 {
			from := rand.IntN(size + 1)
			part := make([]byte, rand.IntN(size-from+1))
			if n, err := r.ReadAt(part, int64(from)); n != len(part) || err != nil || !bytes.Equal(part, held[from:from+len(part)]) {
				t.Fatalf("%d bytes at %d of %d: %d, %v", len(part), from, size, n, err)
			}
		}
		if _, err := r.ReadAt(make([]byte, 1), int64(file.Len())); !errors.Is(err, io.EOF) {
			t.Errorf("behind the end: %v", err)
		}
	}
}
