package harness

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// maxLine limits the length of a transcript line. Longer lines are skipped without being held in
// memory (observations §13).
const maxLine = 64 << 20

// lineReader reads lines and their offsets.
type lineReader struct {
	r      *bufio.Reader
	offset int64  // of the next line
	long   []byte // a line that is longer than the buffer of r
}

type line struct {
	text  []byte // without the newline, valid until the next call; nil if longer than maxLine
	start int64
	huge  bool // longer than maxLine
	torn  bool // the file ends before the end of the line
}

// object returns the JSON object in a line. ok is false if the line does not contain an object.
// Then, unless the line is blank, the reason is counted in skipped.
func (l *line) object(d *jsontext.Decoder, skipped map[string]int) (raw []byte, ok bool) {
	raw = l.text
	if l.start == 0 {
		raw = bytes.TrimPrefix(raw, []byte(byteOrderMark))
	}
	raw = trimSpace(raw)
	maskNUL(raw)
	switch {
	case l.huge:
		skipped[hugeLine]++
	case len(raw) == 0:
	case isObject(d, raw):
		return raw, true
	case l.torn:
		skipped[tornLine]++
	default:
		skipped[badLine]++
	}
	return nil, false
}

func newLineReader(r io.Reader, offset int64) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 256<<10), offset: offset}
}

// next returns the next line. After the last line it returns io.EOF. It returns the errors of the
// reader.
func (l *lineReader) next() (line, error) {
	got := line{start: l.offset}
	if cap(l.long) > 8<<20 {
		l.long = nil
	}
	l.long = l.long[:0]
	for {
		piece, err := l.r.ReadSlice('\n')
		l.offset += int64(len(piece))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return line{}, err
		}
		if len(l.long)+len(piece) > maxLine+1 {
			got.huge, l.long = true, nil
		}
		switch {
		case got.huge:
		case err == nil && len(l.long) == 0:
			got.text = piece[:len(piece)-1]
			return got, nil
		default:
			l.long = append(l.long, piece...)
		}
		switch {
		case err == nil:
			if !got.huge {
				got.text = l.long[:len(l.long)-1]
			}
			return got, nil
		case errors.Is(err, io.EOF):
			if l.offset == got.start {
				return line{}, io.EOF
			}
			got.text, got.torn = l.long, true
			return got, nil
		}
	}
}
