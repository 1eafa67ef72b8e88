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

// Reader reads an export line by line and checks its frame: version, length of lines,
// counts and, at the end, the trailer. It must be used by one goroutine.
type Reader struct {
	Header Header

	in     *bufio.Reader
	sum    hash.Hash
	number int // number of the last line read
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
		return nil, Damaged(1, "this is not the header of a cairn export")
	}
	if n, err := v.Version.Int64(); err != nil || n > Version {
		return nil, newer(1, fmt.Sprintf("the export has version %.20s, this cairn reads %d", v.Version, Version))
	}
	if err := decode(1, text, &x.Header); err != nil {
		return nil, err
	}
	if x.Header.Version < 1 {
		return nil, Damaged(1, "the version of an export must be 1 or more")
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
		return Damaged(1, "the header was altered after it was written: its SHA-256 differs")
	}
	return nil
}

// Next returns the next line. It returns io.EOF after the trailer if the whole export is
// unchanged. Errors: CodeDamaged, CodeNewer, and those of the file. After an error there
// is no further line.
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

// SHA256 returns the trailer's checksum in hex after Next has returned io.EOF. It
// identifies this export.
func (x *Reader) SHA256() string { return x.whole }

// Decode decodes the line's fields into v, a pointer to a struct with a field Kind. An
// unknown field means that a newer cairn wrote the line. Errors: CodeDamaged, CodeNewer.
func (l Line) Decode(v any) error { return decode(l.Number, l.text, v) }

// Refuse returns the error for a line that its part has rejected: CodeNewer if why is
// Unavailable, because a newer cairn can read it, else CodeDamaged.
func (l Line) Refuse(why error) error {
	if f, ok := errors.AsType[*fault.Error](why); ok && f.Kind == fault.Unavailable {
		return newer(l.Number, f.Message)
	}
	return Damaged(l.Number, why.Error())
}

// Unknown returns the error (CodeNewer) for a line of an unknown kind.
func (l Line) Unknown() error {
	return newer(l.Number, fmt.Sprintf("this cairn knows no lines of kind %q", l.Kind))
}

// read returns the next line without its line end. The bytes are valid until the next
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

// readLong continues a line that is longer than the buffer.
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

// end checks the trailer. before is the checksum of the lines before it.
func (x *Reader) end(text, before []byte) error {
	var t trailer
	if err := decode(x.number, text, &t); err != nil {
		return err
	}
	if _, err := x.in.ReadByte(); err == nil {
		return Damaged(x.number+1, "there is data after the end of the export")
	} else if err != io.EOF {
		return err
	}
	if t.Lines != x.number-1 {
		return Damaged(x.number, fmt.Sprintf("%d lines are before it, %d were written", x.number-1, t.Lines))
	}
	if t.SHA256 != hex.EncodeToString(before) {
		return Damaged(x.number, "the lines before it were altered after they were written: their SHA-256 differs")
	}
	if want, err := marshal(t); err != nil || !bytes.Equal(text, want) {
		return Damaged(x.number, "this is not the last line of an export")
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

// maxKind is the maximum length of a kind in bytes.
const maxKind = 40

// kindOf returns the kind of a line. Its errors are human-readable reasons.
func kindOf(text []byte) (string, error) {
	const start = `{"kind":"`
	if rest, ok := bytes.CutPrefix(text, []byte(start)); ok { // as Put writes it; Decode checks the rest
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

// decode decodes text, exactly one JSON value, into v.
func decode(number int, text []byte, v any) error {
	err := strictjson.Decode(text, v)
	if err == nil {
		return nil
	}
	if errors.Is(err, strictjson.ErrMore) {
		return Damaged(number, "there is data after its JSON value")
	}
	if name, ok := errors.AsType[strictjson.UnknownField](err); ok {
		return newer(number, fmt.Sprintf("this cairn does not know its field %.60s", string(name)))
	}
	return Damaged(number, describe(err))
}

// describe returns what is wrong with a JSON text, without repeating it.
func describe(err error) string {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if t.Field == "" {
			return "it is not a JSON object"
		}
		return fmt.Sprintf("its field %.60s holds a JSON %s", t.Field, strings.Fields(t.Value)[0])
	}
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is not valid JSON at byte %d", s.Offset)
	}
	return "it is not valid JSON"
}
