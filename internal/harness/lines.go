package harness

import (
	"bufio"
	"errors"
	"io"

	"cairn/internal/harness/lazyjson"
)

// MaxLine limits the length of a transcript line. Longer lines are skipped without being held in
// memory (observations §13).
const MaxLine = 64 << 20

// LineReader reads lines and their offsets.
type LineReader struct {
	r      *bufio.Reader
	offset int64  // of the next line
	long   []byte // a line that is longer than the buffer of r
}

// Line is a line of a file.
type Line struct {
	Text  []byte // without the newline, valid until the next call; nil if longer than MaxLine
	start int64
	huge  bool // longer than MaxLine
	torn  bool // the file ends before the end of the line
}

// object returns the JSON object in a line. ok is false if the line does not contain an object.
// Then, unless the line is blank, the reason is counted in skipped.
func (l *Line) object(c lazyjson.Checker, skipped map[string]int) (raw lazyjson.Value, ok bool) {
	if raw = lazyjson.TrimSpace(l.Text); l.start == 0 {
		raw = lazyjson.Trimmed(l.Text)
	}
	lazyjson.MaskNUL(raw)
	switch {
	case l.huge:
		skipped[HugeLine]++
	case len(raw) == 0:
	case c.IsObject(raw):
		return raw, true
	case l.torn:
		skipped[TornLine]++
	default:
		skipped[BadLine]++
	}
	return nil, false
}

// NewLineReader returns a reader of lines. offset is the position of r in the file.
func NewLineReader(r io.Reader, offset int64) *LineReader {
	return &LineReader{r: bufio.NewReaderSize(r, 256<<10), offset: offset}
}

// Next returns the next line. After the last line it returns io.EOF. It returns the errors of the
// reader.
func (l *LineReader) Next() (Line, error) {
	got := Line{start: l.offset}
	if cap(l.long) > 8<<20 {
		l.long = nil
	}
	l.long = l.long[:0]
	for {
		piece, err := l.r.ReadSlice('\n')
		l.offset += int64(len(piece))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return Line{}, err
		}
		if len(l.long)+len(piece) > MaxLine+1 {
			got.huge, l.long = true, nil
		}
		switch {
		case got.huge:
		case err == nil && len(l.long) == 0:
			got.Text = piece[:len(piece)-1]
			return got, nil
		default:
			l.long = append(l.long, piece...)
		}
		switch {
		case err == nil:
			if !got.huge {
				got.Text = l.long[:len(l.long)-1]
			}
			return got, nil
		case errors.Is(err, io.EOF):
			if l.offset == got.start {
				return Line{}, io.EOF
			}
			got.Text, got.torn = l.long, true
			return got, nil
		}
	}
}
