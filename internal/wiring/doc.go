// Package wiring connects agents to cairn: it writes hook entries, plugins, rules and
// the MCP server into the user-level settings of the harnesses, as their table in
// package harness says, takes them out again, and tells what is there (contract
// observations §15). It edits text in place: what is not ours keeps its bytes.
package wiring
