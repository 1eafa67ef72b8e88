// Package tomlfile reads TOML settings of cairn and of agents. It reports the file and line
// of an error, and the positions of tables in a text.
package tomlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"cairn/internal/fault"
	"cairn/internal/regular"
)

// Code is the code of a file that is not TOML or does not match its Go type.
const Code = "invalid_settings"

// Read decodes a file into a struct or map. A missing file does not change it. Errors are
// Invalid with Code. They name the file and, if known, the line; the hint has the whole
// path. A file that is not regular or is larger than regular.MaxSettings is an error.
func Read(path string, into any) error {
	text, err := readSettings(path)
	if text == nil {
		return err
	}
	return Decode(path, text, into)
}

// readSettings returns a file's text, nil without an error if the file is missing.
func readSettings(path string) ([]byte, error) {
	text, err := regular.Read(path, regular.MaxSettings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, regular.ErrNotRegular), errors.Is(err, regular.ErrTooLarge):
		return nil, Fault(err, path, "cannot be read: it "+errors.Unwrap(err).Error())
	case err != nil:
		return nil, Fault(err, path, "cannot be read")
	}
	return text, nil
}

// Decode decodes a text like Read. path is used only in errors.
func Decode(path string, text []byte, into any) error {
	err := toml.Unmarshal(text, into)
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := at.Position()
		return Fault(err, path, fmt.Sprintf("line %d: %s", line, reason(at)))
	}
	if err != nil {
		return Fault(err, path, err.Error())
	}
	return nil
}

// reason returns the decoder's message without the names of Go types.
func reason(err *toml.DecodeError) string {
	why := strings.TrimPrefix(err.Error(), "toml: ")
	if kind, ok := strings.CutPrefix(why, "cannot decode TOML "); ok {
		kind, _, _ = strings.Cut(kind, " ")
		return fmt.Sprintf("%s cannot be of the type %s", strings.Join(err.Key(), "."), kind)
	}
	return why
}

// LineOf returns the line of a key in a file, counted from 1. The key is the end of its
// dotted name: "b.c" means the key c of [a.b]. It returns 0 if no table has the key, or the
// file cannot be read.
func LineOf(path, key string) int {
	text, err := readSettings(path)
	if err != nil {
		return 0
	}
	tables, err := Tables(text)
	if err != nil {
		return 0
	}
	for _, t := range tables {
		for _, k := range t.Keys {
			full := "." + strings.Join(append(slices.Clone(t.Name), k.Name...), ".")
			if strings.HasSuffix(full, "."+key) {
				return 1 + bytes.Count(text[:k.Start], []byte("\n"))
			}
		}
	}
	return 0
}

// Fault returns the error for an invalid settings file.
func Fault(cause error, path, why string) *fault.Error {
	return fault.Wrap(cause, fault.Invalid, Code, filepath.Base(path)+": "+why).
		WithHint("correct or remove " + path)
}
