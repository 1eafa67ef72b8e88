package fault

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// maxLine is the maximum number of characters that Line returns.
const maxLine = 293

// Line returns an error as one human-readable line: what failed, why and, in brackets,
// what to do about it. Line breaks become spaces. A line of more than 293 characters ends
// with an ellipsis.
func Line(what string, err error) string {
	line := what + ": " + err.Error()
	if f, ok := errors.AsType[*Error](err); ok && f.Hint != "" {
		line += " (" + f.Hint + ")"
	}
	line = strings.Join(strings.Fields(line), " ")
	if runes := []rune(line); len(runes) > maxLine {
		line = string(runes[:maxLine-1]) + "…"
	}
	return line
}

// Panic returns an error for the value that recover returned. It names the kind of the
// panic and the file and line where it began, without the panic's message, which may
// contain data. The function that recovers must call it.
func Panic(recovered any) error {
	return fmt.Errorf("%s at %s", nature(recovered), panicPlace())
}

// nature returns the kind of a panic, without data from its message.
func nature(recovered any) string {
	if err, ok := recovered.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", recovered)
}

// panicPlace returns the file and line that panicked, ignoring frames of the runtime.
func panicPlace() string {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	panicking := false
	for {
		f, more := frames.Next()
		if panicking && !strings.HasPrefix(f.Function, "runtime.") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		panicking = panicking || f.Function == "runtime.gopanic"
		if !more {
			return "an unknown location"
		}
	}
}
