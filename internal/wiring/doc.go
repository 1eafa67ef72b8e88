// Package wiring connects agents to cairn. It writes hook entries, plugins, rules and the MCP
// server into the user-level settings of the harnesses. It also removes them and reports their
// state (contract observations §15). The table in package harnesses defines the content of each
// file. Edits are in place: text that is not cairn's keeps its bytes.
package wiring
