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
package mcp
