package harness

import (
	"errors"
	"io"
	"runtime"

	"cairn/internal/fault"
)

const (
	firstPiece = 64 << 10
	maxPiece   = 4 << 20
)

// ReadPayload reads r to its end. However large the input, no more than twice
// its size and a few MiB are in memory at once (observations §13); there is no
// limit to the size. Nothing at all is an empty payload, not an error.
//
// It fails with Unavailable, code unreadable_payload, if r does.
func ReadPayload(r io.Reader) ([]byte, error) {
	// A growing buffer would leave its outgrown copies behind; pieces are
	// joined once.
	var pieces [][]byte
	total := 0
	for size := firstPiece; ; size = min(2*size, maxPiece) {
		piece := make([]byte, size)
		n, err := io.ReadFull(r, piece)
		total += n
		pieces = append(pieces, piece[:n])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return nil, fault.Wrap(err, fault.Unavailable, "unreadable_payload", "cannot read the payload")
		}
	}
	if len(pieces) == 1 {
		return pieces[0], nil
	}
	whole := make([]byte, 0, total)
	for i, piece := range pieces {
		whole = append(whole, piece...)
		pieces[i] = nil
	}
	if total > 2*maxPiece {
		runtime.GC() // or the pieces would stay, beside what the caller needs, until the heap has doubled
	}
	return whole, nil
}
