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

// Types lists the values of ObsType, in the order in which people look for them.
func Types() []string {
	return []string{
		TypePrompt, TypeMessage, TypeSessionStart, TypeSessionEnd, TypeCompact, TypeRead, TypeWrite,
		TypeEdit, TypeSearch, TypeCommand, TypeCommandError, TypeGitCommit, TypeGitPush, TypeGitHub,
		TypeMCP, TypeSpawn, TypeFetch, TypeWebSearch, TypeOther, TypeMarker,
	}
}

// IsType reports whether rows can have this type.
func IsType(name string) bool { return slices.Contains(Types(), name) }

// CheckType refuses the name of a type that no rows can have, and lists the types. "" is
// any type.
func CheckType(name string) error {
	if name == "" || IsType(name) {
		return nil
	}
	return fault.Newf(fault.Invalid, "invalid_argument", "no rows are of type %.40q", name).
		WithHint("the types are " + strings.Join(Types(), ", "))
}

// IsAction tells actions from prompts, messages and session marks (observations §6).
func IsAction(obsType string) bool {
	return obsType != TypePrompt && obsType != TypeMessage && !strings.HasPrefix(obsType, "session_")
}

// Retention says after how many days rows of a type expire; a type that is not
// in it never does (observations §11.1).
type Retention map[string]int

// DefaultRetention is the map over which the settings are merged.
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

// Expired reports whether a row of this type and time has had its days.
func (r Retention) Expired(obsType string, at, now int64) bool {
	cutoff := r.Cutoff(obsType, now)
	return cutoff != 0 && at < cutoff
}

// Cutoff is the time before which rows of a type expire, 0 if they never do.
func (r Retention) Cutoff(obsType string, now int64) int64 {
	if days := r[obsType]; days > 0 {
		return now - int64(days)*SecondsPerDay
	}
	return 0
}

// OutputMode says which outputs of commands and tools are kept ([observations.capture]
// output).
type OutputMode string

// The modes. The zero value means OutputDigest.
const (
	OutputDigest OutputMode = "digest" // a digest and the hashes of the lines of every call
	OutputErrors OutputMode = "errors" // the same, of failed calls only
	OutputOff    OutputMode = "off"    // nothing
)

// Stricter returns the mode that keeps less.
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

// DefaultOutputDays is the retention of outputs, in days since cairn stored them.
const DefaultOutputDays = 30

// TypeOfCommand returns the type of the row of a command that passed.
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
