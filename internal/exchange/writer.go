package exchange

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
)

// Writer writes an export. It must be used by one goroutine.
type Writer struct {
	out    *bufio.Writer
	sum    hash.Hash
	lines  int
	counts map[string]int
	want   map[string]int
}

// NewWriter writes the header of an export and sets its version and checksum.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Version, h.Sum = Version, ""
	x := &Writer{out: bufio.NewWriterSize(w, 1<<16), sum: sha256.New(), counts: map[string]int{}, want: h.Counts}
	line, err := marshal(h)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(line)
	h.Sum = hex.EncodeToString(sum[:])
	if line, err = marshal(h); err != nil {
		return nil, err
	}
	err = x.line(line)
	x.sum.Reset()
	return x, err
}

// Put writes one line: the kind, then the fields of the struct v.
func (x *Writer) Put(kind string, v any) error {
	fields, err := marshal(v)
	if err != nil {
		return err
	}
	line := slices.Concat([]byte(`{"kind":"`+kind+`",`), fields[1:])
	if len(line) > MaxLine {
		return fmt.Errorf("a line of kind %s has %d bytes, at most %d are possible", kind, len(line), MaxLine)
	}
	x.counts[kind]++
	return x.line(line)
}

// Lines returns the number of lines after the header.
func (x *Writer) Lines() int { return x.lines - 1 }

// Close writes the trailer. Nothing may follow. It fails if the number of lines differs
// from the header's counts.
func (x *Writer) Close() error {
	for kind, n := range x.want {
		if x.counts[kind] != n {
			return fmt.Errorf("%d lines of kind %s were announced, %d written", n, kind, x.counts[kind])
		}
	}
	line, err := marshal(trailer{Kind: kindEnd, Lines: x.lines, SHA256: hex.EncodeToString(x.sum.Sum(nil))})
	return errors.Join(err, x.line(line), unwritable(x.out.Flush()))
}

func (x *Writer) line(text []byte) error {
	x.lines++
	text = append(text, '\n')
	x.sum.Write(text)
	_, err := x.out.Write(text)
	return unwritable(err)
}
