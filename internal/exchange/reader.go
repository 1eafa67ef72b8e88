package exchange

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/strictjson"
)

// Reader reads an export line by line and judges its frame: version, size of
// lines, counts and, at the end, the trailer. It is used by one goroutine.
type Reader struct {
	Header Header

	in     *bufio.Reader
	sum    hash.Hash
	number int // of the line that was read last
	counts map[string]int
	ended  bool
	whole  string
}

// Line is one line between header and trailer.
type Line struct {
	Number int
	Kind   string
	text   []byte // valid until the next call of Next
}

// NewReader reads the header. Errors: CodeDamaged, CodeNewer, and those of r.
func NewReader(r io.Reader) (*Reader, error) {
	x := &Reader{in: bufio.NewReaderSize(r, 1<<16), sum: sha256.New(), counts: map[string]int{}}
	text, err := x.read()
	if err != nil {
		return nil, err
	}
	var v struct {
		Version json.Number `json:"cairn_export"`
	}
	if !bytes.HasPrefix(text, []byte(mark)) || json.Unmarshal(text, &v) != nil {
		return nil, Damaged(1, "this is no header of a cairn export")
	}
	if n, err := v.Version.Int64(); err != nil || n > Version {
		return nil, newer(1, fmt.Sprintf("the export has version %.20s, this cairn reads %d", v.Version, Version))
	}
	if err := decode(1, text, &x.Header); err != nil {
		return nil, err
	}
	if x.Header.Version < 1 {
		return nil, Damaged(1, "an export's version is 1 or more")
	}
	if x.Header.Version >= sumWithoutHeader {
		x.sum.Reset()
		return x, x.checkHeader(text)
	}
	return x, nil
}

// checkHeader compares the header with its own sum.
func (x *Reader) checkHeader(text []byte) error {
	rest, ok := bytes.CutSuffix(text, []byte(`,"sha256":"`+x.Header.Sum+`"}`))
	sum := sha256.Sum256(append(slices.Clip(rest), '}'))
	if !ok || x.Header.Sum != hex.EncodeToString(sum[:]) {
		return Damaged(1, "the header has been altered since it was written: its SHA-256 differs")
	}
	return nil
}

// Next returns the next line; io.EOF when the trailer was read and everything
// before it is as it was written. Errors: CodeDamaged, CodeNewer, and those of
// the file. After an error there is no further line.
func (x *Reader) Next() (Line, error) {
	if x.ended {
		return Line{}, io.EOF
	}
	before := x.sum.Sum(nil)
	text, err := x.read()
	if err != nil {
		return Line{}, err
	}
	kind, err := kindOf(text)
	switch {
	case err != nil:
		return Line{}, Damaged(x.number, err.Error())
	case kind == kindEnd:
		return Line{}, x.end(text, before)
	}
	x.counts[kind]++
	return Line{Number: x.number, Kind: kind, text: text}, nil
}

// SHA256 is the sum of the trailer, in hex, once Next has returned io.EOF: it
// stands for this very export.
func (x *Reader) SHA256() string { return x.whole }

// Decode reads the line's fields into v, a pointer to a struct with a field
// Kind. A field that v does not have is one of a newer cairn's. Errors:
// CodeDamaged, CodeNewer.
func (l Line) Decode(v any) error { return decode(l.Number, l.text, v) }

// Refuse is the error for a line with which something is wrong that its part has
// found: CodeNewer if why is Unavailable, so that a newer cairn can read it, else
// CodeDamaged.
func (l Line) Refuse(why error) error {
	if f, ok := errors.AsType[*fault.Error](why); ok && f.Kind == fault.Unavailable {
		return newer(l.Number, f.Message)
	}
	return Damaged(l.Number, why.Error())
}

// Unknown is the error (CodeNewer) for a line of a kind that nobody knows.
func (l Line) Unknown() error {
	return newer(l.Number, fmt.Sprintf("this cairn knows no lines of kind %q", l.Kind))
}

// read returns the next line without its end. The bytes are valid until the next
// call.
func (x *Reader) read() ([]byte, error) {
	x.number++
	text, err := x.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		text, err = x.readLong(text)
	}
	switch {
	case err == io.EOF && len(text) == 0:
		return nil, Damaged(x.number, "the file ends here, its last lines are missing")
	case err == io.EOF:
		return nil, Damaged(x.number, "the file ends in the middle of this line")
	case err != nil:
		return nil, err
	}
	x.sum.Write(text)
	text = text[:len(text)-1]
	if !utf8.Valid(text) {
		return nil, Damaged(x.number, "it is not UTF-8")
	}
	return text, nil
}

// readLong goes on with a line that is longer than the buffer.
func (x *Reader) readLong(start []byte) ([]byte, error) {
	long := bytes.Clone(start)
	for {
		more, err := x.in.ReadSlice('\n')
		long = append(long, more...)
		switch {
		case len(long) > MaxLine+1:
			return nil, Damaged(x.number, fmt.Sprintf("it is longer than %d MiB", MaxLine>>20))
		case !errors.Is(err, bufio.ErrBufferFull):
			return long, err
		}
	}
}

// end judges the trailer; before is the sum of the lines before it.
func (x *Reader) end(text, before []byte) error {
	var t trailer
	if err := decode(x.number, text, &t); err != nil {
		return err
	}
	if _, err := x.in.ReadByte(); err == nil {
		return Damaged(x.number+1, "something follows the end of the export")
	} else if err != io.EOF {
		return err
	}
	if t.Lines != x.number-1 {
		return Damaged(x.number, fmt.Sprintf("%d lines stand before it, %d were written", x.number-1, t.Lines))
	}
	if t.SHA256 != hex.EncodeToString(before) {
		return Damaged(x.number, "the lines before it have been altered since they were written: their SHA-256 differs")
	}
	if want, err := marshal(t); err != nil || !bytes.Equal(text, want) {
		return Damaged(x.number, "this is not how an export ends")
	}
	for _, kind := range slices.Sorted(maps.Keys(x.Header.Counts)) {
		if x.Header.Counts[kind] != x.counts[kind] {
			return Damaged(x.number, fmt.Sprintf("the header announces %d lines of kind %.40q, there are %d",
				x.Header.Counts[kind], kind, x.counts[kind]))
		}
	}
	x.ended, x.whole = true, t.SHA256
	return io.EOF
}

// maxKind is how many bytes a kind may have.
const maxKind = 40

// kindOf is the kind of a line. Errors tell what is wrong with it, for people.
func kindOf(text []byte) (string, error) {
	const start = `{"kind":"`
	if rest, ok := bytes.CutPrefix(text, []byte(start)); ok { // as Put writes it; Decode judges the rest
		kind, _, ok := bytes.Cut(rest[:min(len(rest), maxKind+1)], []byte(`"`))
		if ok && len(kind) > 0 && !bytes.ContainsRune(kind, '\\') {
			return string(kind), nil
		}
	}
	var v struct {
		Kind *string `json:"kind"`
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return "", errors.New(describe(err))
	}
	if v.Kind == nil || *v.Kind == "" || len(*v.Kind) > maxKind {
		return "", errors.New("it has no kind")
	}
	return *v.Kind, nil
}

// decode reads one JSON value, all of it, into v.
func decode(number int, text []byte, v any) error {
	err := strictjson.Decode(text, v)
	if err == nil {
		return nil
	}
	if errors.Is(err, strictjson.ErrMore) {
		return Damaged(number, "something follows its JSON value")
	}
	if name, ok := errors.AsType[strictjson.UnknownField](err); ok {
		return newer(number, fmt.Sprintf("this cairn does not know its field %.60s", string(name)))
	}
	return Damaged(number, describe(err))
}

// describe reports what is wrong with a JSON text without repeating any of it.
func describe(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if t.Field == "" {
			return "it is no JSON object"
		}
		return fmt.Sprintf("its field %.60s holds a JSON %s", t.Field, strings.Fields(t.Value)[0])
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is not valid JSON at byte %d", s.Offset)
	}
	return "it is not valid JSON"
}
