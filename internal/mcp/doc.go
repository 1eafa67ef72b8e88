// Package mcp is the edge that speaks the Model Context Protocol. It alone
// knows the official Go SDK; the rest of the program describes tools as data
// and functions.
//
// A [Tool] names its parameters once: from that table come both the JSON
// Schema that clients see and the check of what they send. Every argument error
// is a tool result that the model can read, never a protocol error (contract
// observations §8). Unknown arguments are ignored, null counts as omitted, and
// whole numbers may be written as 3.0.
//
// Errors ([cairn/internal/fault]) are mapped once: Invalid, NotFound, Conflict
// and Denied become a result with isError and the message as text; Unavailable
// and Internal become the JSON-RPC error -32603 with the message.
//
// One [Server] serves any number of sessions, on standard input and output
// ([Server.ServeStdio]) and over streamable HTTP ([Server.Handler]), in every
// protocol revision from 2024-11-05 to 2026-07-28.
//
// # Why: edges
//
// Record tools answer errors as their envelope, for agents act on codes; observation
// tools keep their seed's bare sentences. All read arguments by one table; that mail
// takes numbers and booleans as text too, aliases, and has codes of its own for what is
// wrong, is said of its parameters. Optional arguments of mail are told where they are
// worth their tokens and taken in any case, so thirty-one tools cost 2,000; for the same
// reason no tool tells more annotations than one. A resource's address is arguments,
// too; the SDK finds it without the query, whose parts come in any order. A server's own
// session is made by its first write that needs one and forgotten with its transport.
// What is refused makes no store: a command is first tried over one in memory. httpapi
// imports mcp for its tool table: one list, one reading of arguments. Metrics are
// written by hand: the library planned for it looks up things at start (0.1 ms of each
// hook), and its histograms are not Prometheus' own. gitleaks is an oracle in a module
// of its own, so that its dependencies stay out.
package mcp
