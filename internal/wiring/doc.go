// Package wiring connects agents to cairn. It writes hook entries, plugins, rules and the
// MCP server into the user-level settings of the harnesses, removes them, and reports what
// is there (contract observations §15). The table in package harness says what belongs into
// which file. Edits are in place: text that is not cairn's keeps its bytes.
package wiring
