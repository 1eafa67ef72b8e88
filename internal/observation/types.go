package observation

import (
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/shell"
)

const (
	typePrompt       = "user_prompt"
	typeMessage      = "agent_message"
	typeSessionStart = "session_start"
	typeSessionEnd   = "session_end"
	typeCompact      = "session_compact"
	typeRead         = "file_read"
	typeWrite        = "file_write"
	typeEdit         = "file_edit"
	typeSearch       = "search"
	typeCommand      = "command"
	typeCommandError = "command_error"
	typeGitCommit    = "git_commit"
	typeGitPush      = "git_push"
	typeGitHub       = "github"
	typeMCP          = "mcp_call"
	typeSpawn        = "task_spawn"
	typeFetch        = "web_fetch"
	typeWebSearch    = "web_search"
	typeOther        = "tool_other"
	typeMarker       = "marker"
)

// types lists every row type.
func types() []string {
	return []string{
		typePrompt, typeMessage, typeSessionStart, typeSessionEnd, typeCompact, typeRead, typeWrite,
		typeEdit, typeSearch, typeCommand, typeCommandError, typeGitCommit, typeGitPush, typeGitHub,
		typeMCP, typeSpawn, typeFetch, typeWebSearch, typeOther, typeMarker,
	}
}

// Types are the values of ObsType, in the order in which people look for them.
func Types() []string { return types() }

// IsType reports whether rows can have this type.
func IsType(name string) bool { return slices.Contains(types(), name) }

// checkType refuses the name of a type that no rows can have, and lists the types. "" is
// any type.
func checkType(name string) error {
	if name == "" || IsType(name) {
		return nil
	}
	return fault.Newf(fault.Invalid, "invalid_argument", "no rows are of type %.40q", name).
		WithHint("the types are " + strings.Join(types(), ", "))
}

// isAction tells actions from prompts, messages and session marks (observations §6).
func isAction(obsType string) bool {
	return obsType != typePrompt && obsType != typeMessage && !strings.HasPrefix(obsType, "session_")
}

// Retention says after how many days rows of a type expire; a type that is not
// in it never does (observations §11.1).
type Retention map[string]int

// DefaultRetention is the map over which the settings are merged.
func DefaultRetention() Retention {
	r := Retention{}
	for days, list := range map[int][]string{
		730: {typeGitCommit, typeGitPush},
		365: {typeWrite, typeEdit, typeSessionStart, typeSessionEnd, typeCompact},
		180: {typeCommand, typeCommandError, typeGitHub},
		90:  {typeRead, typeSearch, typeMCP, typeFetch, typeWebSearch, typeSpawn, typeOther},
	} {
		for _, t := range list {
			r[t] = days
		}
	}
	return r
}

const secondsPerDay = 24 * 60 * 60

// expired reports whether a row of this type and time has had its days.
func (r Retention) expired(obsType string, at, now int64) bool {
	cutoff := r.cutoff(obsType, now)
	return cutoff != 0 && at < cutoff
}

// cutoff is the time before which rows of a type expire, 0 if they never do.
func (r Retention) cutoff(obsType string, now int64) int64 {
	if days := r[obsType]; days > 0 {
		return now - int64(days)*secondsPerDay
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

// typeOfCommand returns the type of the row of a command that passed.
func typeOfCommand(u shell.Use) string {
	switch {
	case u.Push:
		return typeGitPush
	case u.Commit:
		return typeGitCommit
	case u.Github:
		return typeGitHub
	}
	return typeCommand
}
