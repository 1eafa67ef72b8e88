package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/store"
)

// ExitError carries an exit code through cobra. Its message is already printed.
type ExitError int

// Error returns the code as a text.
func (e ExitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// Enveloped is the annotation of commands that print errors as an envelope with --json.
const Enveloped = "enveloped"

// PrintEnvelope prints an error as an envelope of JSON.
func PrintEnvelope(w io.Writer, err error) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(fault.EnvelopeOf(err))
}

// ExitCode maps a fault to an exit code: 1 if the answer is no, else 2.
func ExitCode(err error) int {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return 2
	}
	switch {
	case f.Code == store.CodeMissing:
		return 2
	case f.Code == memory.CodeAwaitTimeout:
		return 1
	case f.Code == CodeStopped:
		return 1 // only a part was done
	case f.Kind == fault.NotFound, f.Kind == fault.Conflict, f.Kind == fault.Denied:
		return 1
	}
	return 2
}

// Report prints one line: what failed, why, and what to do about it.
func Report(w io.Writer, what string, err error) { fmt.Fprintln(w, "cairn: "+fault.Line(what, err)) }

// CodeStopped is the code of an import that a signal stopped.
const CodeStopped = "stopped"
