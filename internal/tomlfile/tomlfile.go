// Package tomlfile reads TOML: settings of cairn and of agents. It says in which
// file and line something is wrong, and where in a text its tables stand.
package tomlfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pelletier/go-toml/v2"

	"cairn/internal/fault"
)

// Code marks a file that is no TOML or does not fit what it is read into.
const Code = "invalid_settings"

// Read decodes a file into a struct or map. A missing file leaves it as it is.
// Errors are Invalid with Code and name the file and, where it is known, the
// line; the hint names the whole path.
func Read(path string, into any) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return Fault(err, path, "cannot be read")
	}
	return Decode(path, text, into)
}

// Decode is Read for a text that was read already; path is for the error only.
func Decode(path string, text []byte, into any) error {
	err := toml.Unmarshal(text, into)
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		line, _ := at.Position()
		return Fault(err, path, fmt.Sprintf("line %d: %s", line, at.Error()))
	}
	if err != nil {
		return Fault(err, path, err.Error())
	}
	return nil
}

// Fault is the error for a settings file that cannot be used.
func Fault(cause error, path, why string) *fault.Error {
	return fault.Wrap(cause, fault.Invalid, Code, filepath.Base(path)+": "+why).
		WithHint("correct or remove " + path)
}
