package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"time"

	"cairn/internal/fault"
)

// Version is the version of the format that this cairn writes, and the newest
// that it reads.
const Version = 2

// sumWithoutHeader is the first version whose trailer has the sum of the lines without
// the header, so that exports of equal stores differ in the header alone.
const sumWithoutHeader = 2

// MaxLine is how many bytes a line may have, its end not counted.
const MaxLine = 16 << 20

// Codes of the errors that this room makes.
const (
	CodeDamaged = "export_damaged" // Invalid: the file is torn, altered or no export at all
	CodeNewer   = "export_newer"   // Unavailable: a newer cairn wrote it
	CodeWrite   = "export_write"   // Unavailable: the file cannot be written
)

// The kinds of the frame; all others are the parts'.
const kindEnd = "end"

// Header is the first line of an export.
type Header struct {
	Version  int            `json:"cairn_export"` // of the format
	Cairn    string         `json:"cairn"`        // the version of the program that wrote it
	At       time.Time      `json:"at"`           // when, UTC
	All      bool           `json:"all"`          // every project of a store, else one
	Projects []string       `json:"projects"`     // their ids, in order
	Counts   map[string]int `json:"counts"`       // lines by kind, header and trailer not counted

	// Sum is the SHA-256 of the header as it is without it, in hex; from version 2 on.
	Sum string `json:"sha256,omitempty"`
}

// trailer is the last line: the number of lines before it, and the SHA-256 of those
// behind the header, line ends included. In version 1 the sum includes the header.
type trailer struct {
	Kind   string `json:"kind"`
	Lines  int    `json:"lines"`
	SHA256 string `json:"sha256"`
}

// mark begins the first line of every export, of any version.
const mark = `{"cairn_export":`

// IsExport reports whether a file begins as an export does. It reads a few bytes.
func IsExport(r io.Reader) bool {
	head := make([]byte, len(mark))
	_, err := io.ReadFull(r, head)
	return err == nil && string(head) == mark
}

// marshal is v as one line of JSON without its end.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Damaged is the error (Invalid, CodeDamaged) for a line that is not as an export's
// ought to be. why is free of the line's own text.
func Damaged(line int, why string) error {
	return fault.Newf(fault.Invalid, CodeDamaged, "line %d: %s", line, why).
		WithHint("nothing of the file was taken; make the export again")
}

// newer is the error for what only a newer cairn can have written.
func newer(line int, what string) error {
	return fault.Newf(fault.Unavailable, CodeNewer, "line %d: %s", line, what).WithHint("upgrade cairn")
}

// unwritable is the error (CodeWrite) for an export that cannot be written; nil
// for nil.
func unwritable(err error) error {
	if err == nil {
		return nil
	}
	why := err
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		why = p.Err
	}
	return fault.Wrap(err, fault.Unavailable, CodeWrite, "cannot write the export: "+why.Error()).
		WithHint("name another file with --out")
}
