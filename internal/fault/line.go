package fault

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// maxLine is how many characters Line returns at most.
const maxLine = 293

// Line is an error as one line for people: what failed, why, and in brackets what to do
// about it. Line breaks become spaces; a long line ends with an ellipsis after 293
// characters.
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

// Panic is the error of what recover returned: the nature of the panic and the place of
// ours where it began, without data that may stand in its message. Call it in the function
// that recovers.
func Panic(recovered any) error {
	return fmt.Errorf("%s at %s", nature(recovered), panicPlace())
}

// nature is what went wrong, without what data may have got into a message.
func nature(recovered any) string {
	if err, ok := recovered.(runtime.Error); ok {
		return err.Error()
	}
	return fmt.Sprintf("a %T", recovered)
}

// panicPlace is the file and line that is panicking, the runtime's own aside.
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
			return "an unknown place"
		}
	}
}
