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

// Version is the format version that this cairn writes, and the newest that it reads.
const Version = 2

// sumWithoutHeader is the first version whose trailer's checksum excludes the header. So
// exports of equal stores differ only in the header.
const sumWithoutHeader = 2

// MaxLine is the maximum length of a line in bytes, without its line end.
const MaxLine = 16 << 20

// Error codes of this package.
const (
	CodeDamaged = "export_damaged" // Invalid: the file is truncated, altered or not an export
	CodeNewer   = "export_newer"   // Unavailable: a newer cairn wrote it
	CodeWrite   = "export_write"   // Unavailable: the file cannot be written
)

// kindEnd is the kind of the trailer. The parts define all other kinds.
const kindEnd = "end"

// Header is the first line of an export.
type Header struct {
	Version  int            `json:"cairn_export"` // version of the format
	Cairn    string         `json:"cairn"`        // version of the program that wrote it
	At       time.Time      `json:"at"`           // time of the export, UTC
	All      bool           `json:"all"`          // all projects of a store, else one
	Projects []string       `json:"projects"`     // their ids, in order
	Counts   map[string]int `json:"counts"`       // number of lines by kind, without header and trailer

	// Sum is the SHA-256 in hex of the header without this field. Since version 2.
	Sum string `json:"sha256,omitempty"`
}

// trailer is the last line: the number of lines before it, and the SHA-256 of the lines
// after the header, line ends included. In version 1 the sum includes the header.
type trailer struct {
	Kind   string `json:"kind"`
	Lines  int    `json:"lines"`
	SHA256 string `json:"sha256"`
}

// mark is the start of every export, of any version.
const mark = `{"cairn_export":`

// IsExport reports whether a file starts like an export. It reads a few bytes.
func IsExport(r io.Reader) bool {
	head := make([]byte, len(mark))
	_, err := io.ReadFull(r, head)
	return err == nil && string(head) == mark
}

// marshal returns v as one line of JSON, without its line end.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Damaged returns the error (Invalid, CodeDamaged) for an invalid line. why does not
// contain the line's text.
func Damaged(line int, why string) error {
	return fault.Newf(fault.Invalid, CodeDamaged, "line %d: %s", line, why).
		WithHint("nothing of the file was imported; export again")
}

// newer returns the error for content that only a newer cairn can have written.
func newer(line int, what string) error {
	return fault.Newf(fault.Unavailable, CodeNewer, "line %d: %s", line, what).WithHint("upgrade cairn")
}

// unwritable returns the error (CodeWrite) for an export that cannot be written, nil for
// nil.
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
