// Package windsurf describes Windsurf: its hooks and its settings.
//
// Its transcripts are encrypted, and its hooks do not report the result of a command.
package windsurf
