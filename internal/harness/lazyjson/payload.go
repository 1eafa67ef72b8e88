package lazyjson

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"slices"

	"cairn/internal/fault"
)

const (
	firstPiece = 64 << 10
	maxPiece   = 4 << 20
	maxPayload = 64 << 20 // the size up to which a payload is not shortened
)

// ReadPayload reads r to its end. It never holds more than twice the size of the input and a few
// MiB in memory (observations §13). An empty input is an empty payload, not an error.
//
// A payload over 64 MiB is shortened while it is read and remains one JSON object. Long strings
// lose their middle, and long arrays and objects lose their end. This needs 64 MiB and about 32
// MiB more, whatever the payload's length. ReadPayload always reads the rest of r, because
// otherwise a writer could fail.
//
// If r fails, the error is Unavailable, code unreadable_payload. If a payload over 64 MiB cannot
// be shortened because it is not a JSON object, the error is Invalid, code payload_too_large.
func ReadPayload(r io.Reader) ([]byte, error) {
	// A growing buffer would leave copies of its smaller versions in memory. Pieces are joined
	// once.
	var pieces [][]byte
	total := 0
	for size := firstPiece; ; size = min(2*size, maxPiece) {
		piece := make([]byte, size)
		n, err := io.ReadFull(r, piece)
		total += n
		pieces = append(pieces, piece[:n])
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !ended {
			return nil, unreadablePayload(err)
		}
		if total > maxPayload {
			return readShortened(pieces, r)
		}
		if ended {
			break
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
		runtime.GC() // otherwise the pieces would stay in memory until the heap has doubled
	}
	return whole, nil
}

func unreadablePayload(err error) error {
	return fault.Wrap(err, fault.Unavailable, "unreadable_payload", "cannot read the payload")
}

// readShortened returns the shortened payload. pieces are its beginning, and r is the rest. It
// clears pieces.
func readShortened(pieces [][]byte, r io.Reader) ([]byte, error) {
	s := newShortener()
	for i, piece := range pieces {
		for part := range slices.Chunk(piece, firstPiece) {
			s.write(part)
		}
		pieces[i] = nil
	}
	runtime.GC() // frees the pieces before the next allocations
	buffer := make([]byte, firstPiece)
	for {
		n, err := r.Read(buffer)
		s.write(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, unreadablePayload(err)
		}
	}
	body := bytes.TrimPrefix(s.out, []byte(ByteOrderMark))
	MaskNUL(body)
	if s.failed || CheckPayload(body, 0) != nil {
		return nil, fault.Newf(fault.Invalid, "payload_too_large",
			"the payload is over the limit of %d MiB and cannot be shortened: it is not a valid JSON object", maxPayload>>20)
	}
	return s.out, nil
}
