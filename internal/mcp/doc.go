// Package mcp is the edge that speaks the Model Context Protocol. It alone
// knows the official Go SDK; the rest of the program describes tools as data
// and functions.
//
// The arguments of a [Tool] are the fields of one struct, mostly that of the method which
// it calls. Their tags declare the JSON Schema that clients see and how what they send is
// read; the tool's function gets the struct. The schema of its result
// comes from the Go type of the result. Every argument error
// is a tool result that the model can read, never a protocol error (contract
// observations §8). Unknown arguments are ignored and named in the result, null counts as
// omitted, and whole numbers may be written as 3.0.
//
// ErrorFormat ([cairn/internal/fault]) are mapped once: Invalid, NotFound, Conflict
// and Denied become a result with isError and the message as text; Unavailable
// and Internal become the JSON-RPC error -32603 with the message.
//
// Programs that load tools on demand are offered all of them. For the others there is a
// small surface, [Lean], with two tools that find and call the rest ([Reaching]).
// [Hosts] says what each program sends to its model.
//
// One [Server] serves any number of sessions, on standard input and output
// ([Server.ServeStdio]) and over streamable HTTP ([Server.Handler]), in every
// protocol revision from 2024-11-05 to 2026-07-28.
//
// # Why: edges
//
// Record tools answer errors as their envelope, for agents act on codes; observation
// tools keep their seed's bare sentences. One function reads the arguments of all tools;
// mail also takes numbers and booleans as text and has error codes of its own. What old
// clients send and nothing heeds is accepted and not listed. The small surface tells the arguments that matter most; its tools take all.
// Schemas of results allow fields that they do not name, so that a client with an old
// list takes the answers of a newer cairn. call_tool decides nothing: it hands the call
// to the tool, which checks, counts and answers as if it had been called by its name,
// and calls by name are answered as well, since programs keep old lists. A resource's
// address is arguments, too; the SDK finds it without the query, whose parts come in any
// order. A server's own session is made by its first write that needs one and forgotten with its transport.
// What is refused makes no store: a command is first tried over one in memory. httpapi
// imports mcp for its tool table: one list, one reading of arguments. Metrics are
// written by hand: the library planned for it looks up things at start (0.1 ms of each
// hook), and its histograms are not Prometheus' own. gitleaks is an oracle in a module
// of its own, so that its dependencies stay out.
package mcp
