package observation

import (
	"strings"

	failures "cairn/internal/failure"
	"cairn/internal/shell"
)

// Reason returns the line of a stored error that says why: its first line, as
// failure stores it. Rows of earlier versions start with the exit code; the line is
// then found in the error. It is "" if the error has nothing but an exit code.
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

// IsExitCode matches the line by which harnesses give the exit code.
func IsExitCode(line string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "Error: "), "Exit code ")
	return ok && strings.Trim(rest, "-0123456789") == ""
}
