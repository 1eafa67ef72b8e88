// Package harness describes the coding agents: what their hooks send, the layout of their
// transcripts and where they store them. It converts both into observation.Event values. No other
// package contains code for a single agent.
//
// All input comes from other programs and changes without notice. Known fields are used and
// unknown fields are ignored. A field of a wrong type is not an error. Every text of an event is
// valid UTF-8 without NUL: invalid bytes, lone surrogates and NUL become U+FFFD. A text over 2 MiB
// is cut to its first and last MiB.
//
// The function Harnesses returns the table of all harnesses (contract observations §4.2, §4.3).
// Their transcripts are described in §12. Other packages read the differences between agents from
// the Harness values.
//
// Some facts are not available. Gemini CLI's hooks send no call ids. Cursor's transcripts contain
// neither ids nor results, and times only in minutes. For both, equal content identifies the same
// call (observation.Match). Cursor's transcripts do not show whether a call failed. Windsurf's
// transcripts are encrypted, and its hooks do not report the result of a command.
package harness
