package observation

import (
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/shell"
)

const (
	TypePrompt       = "user_prompt"
	TypeMessage      = "agent_message"
	TypeSessionStart = "session_start"
	TypeSessionEnd   = "session_end"
	TypeCompact      = "session_compact"
	TypeRead         = "file_read"
	TypeWrite        = "file_write"
	TypeEdit         = "file_edit"
	TypeSearch       = "search"
	TypeCommand      = "command"
	TypeCommandError = "command_error"
	TypeGitCommit    = "git_commit"
	TypeGitPush      = "git_push"
	TypeGitHub       = "github"
	TypeMCP          = "mcp_call"
	TypeSpawn        = "task_spawn"
	TypeFetch        = "web_fetch"
	TypeWebSearch    = "web_search"
	TypeOther        = "tool_other"
	TypeMarker       = "marker"
)

// Types returns the values of ObsType in the order in which users look for them.
func Types() []string {
	return []string{
		TypePrompt, TypeMessage, TypeSessionStart, TypeSessionEnd, TypeCompact, TypeRead, TypeWrite,
		TypeEdit, TypeSearch, TypeCommand, TypeCommandError, TypeGitCommit, TypeGitPush, TypeGitHub,
		TypeMCP, TypeSpawn, TypeFetch, TypeWebSearch, TypeOther, TypeMarker,
	}
}

// IsType reports whether name is a type of row.
func IsType(name string) bool { return slices.Contains(Types(), name) }

// CheckType returns an error that lists the types if name is not a type of row. "" is valid and
// means any type.
func CheckType(name string) error {
	if name == "" || IsType(name) {
		return nil
	}
	return fault.Newf(fault.Invalid, "invalid_argument", "no rows are of type %.40q", name).
		WithHint("the types are " + strings.Join(Types(), ", "))
}

// IsAction reports whether a type is an action, not a prompt, a message or a session mark
// (observations §6).
func IsAction(obsType string) bool {
	return obsType != TypePrompt && obsType != TypeMessage && !strings.HasPrefix(obsType, "session_")
}

// Retention maps types to the days after which their rows expire. Rows of other types never
// expire (observations §11.1).
type Retention map[string]int

// DefaultRetention returns the defaults that the settings override.
func DefaultRetention() Retention {
	r := Retention{}
	for days, list := range map[int][]string{
		730: {TypeGitCommit, TypeGitPush},
		365: {TypeWrite, TypeEdit, TypeSessionStart, TypeSessionEnd, TypeCompact},
		180: {TypeCommand, TypeCommandError, TypeGitHub},
		90:  {TypeRead, TypeSearch, TypeMCP, TypeFetch, TypeWebSearch, TypeSpawn, TypeOther},
	} {
		for _, t := range list {
			r[t] = days
		}
	}
	return r
}

const SecondsPerDay = 24 * 60 * 60

// Expired reports whether a row of this type and time has expired.
func (r Retention) Expired(obsType string, at, now int64) bool {
	cutoff := r.Cutoff(obsType, now)
	return cutoff != 0 && at < cutoff
}

// Cutoff returns the time before which rows of a type have expired, 0 if they never expire.
func (r Retention) Cutoff(obsType string, now int64) int64 {
	if days := r[obsType]; days > 0 {
		return now - int64(days)*SecondsPerDay
	}
	return 0
}

// OutputMode selects the outputs of commands and tools to store ([observations.capture] output).
type OutputMode string

// The modes. The zero value means OutputDigest.
const (
	OutputDigest OutputMode = "digest" // a digest and the line hashes of every call
	OutputErrors OutputMode = "errors" // the same, for failed calls only
	OutputOff    OutputMode = "off"    // nothing
)

// Stricter returns the mode that stores less.
func (m OutputMode) Stricter(n OutputMode) OutputMode {
	for _, mode := range [...]OutputMode{OutputOff, OutputErrors} {
		if m == mode || n == mode {
			return mode
		}
	}
	return OutputDigest
}

// IsValid reports whether m is one of the modes.
func (m OutputMode) IsValid() bool {
	return m == "" || m == OutputDigest || m == OutputErrors || m == OutputOff
}

// DefaultOutputDays is the retention of outputs in days, from the time they were stored.
const DefaultOutputDays = 30

// TypeOfCommand returns the row type of a successful command.
func TypeOfCommand(u shell.Use) string {
	switch {
	case u.Push:
		return TypeGitPush
	case u.Commit:
		return TypeGitCommit
	case u.Github:
		return TypeGitHub
	}
	return TypeCommand
}
