package observation

import (
	"strings"

	failures "cairn/internal/failure"
	"cairn/internal/shell"
)

// Reason returns the line of a stored error that explains the failure. This is the first line,
// as package failure stores it. Rows of earlier versions start with the exit code, so Reason
// finds the line in the rest. It returns "" if the error contains only an exit code.
func Reason(command, stored string) string {
	first, rest, _ := strings.Cut(strings.TrimLeft(stored, " \t\r\n"), "\n")
	if !IsExitCode(first) {
		return strings.TrimSpace(first)
	}
	if strings.TrimSpace(rest) == "" {
		return ""
	}
	return failures.Find(rest, shell.ProgramWords(command, "")).Text
}

// IsExitCode reports whether a line is the one in which harnesses report the exit code.
func IsExitCode(line string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "Error: "), "Exit code ")
	return ok && strings.Trim(rest, "-0123456789") == ""
}
