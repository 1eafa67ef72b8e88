// Package mcp serves cairn's tools to coding agents over the Model Context Protocol. Only
// this package and stdio, its transport for a client that starts cairn, import the official
// Go SDK; other packages describe tools as data and functions.
//
// The arguments of a [Tool] are the fields of one struct, usually the struct of the method
// that it calls. The tags of the fields define the JSON Schema for clients and how values
// are read ([cairn/internal/mcp/toolargs]). The tool's function gets the struct. The schema of the result comes from its
// Go type. An argument error is always a tool result that the model can read, never a
// protocol error (contract observations §8). Unknown arguments are ignored and named in
// the result. null counts as omitted. Whole numbers can be written as 3.0.
//
// Errors ([cairn/internal/fault]) are mapped in one place. Invalid, NotFound, Conflict and
// Denied become a result with isError and the message as text. Unavailable and Internal
// become the JSON-RPC error -32603 with the message.
//
// Programs that load tools on demand get all tools. Other programs can get the small set
// [Lean], with two tools that find and call the rest ([ReachTools]). [Hosts] describes
// what each program sends to its model.
//
// One [Server] serves any number of sessions, on standard input and output
// ([Server.ServeStdio]) and over streamable HTTP ([Server.Handler]), in every
// protocol revision from 2024-11-05 to 2026-07-28.
//
// # Why: edges
//
// Record tools return errors as envelopes, because agents act on their codes. Observation
// tools return plain sentences, as their seed does. One parameter table drives argument
// parsing for all tools; mail also accepts numbers and booleans as text, and has its own
// error codes. Arguments that only old clients send are accepted and not listed. The lean
// tools list their most important arguments and accept all.
//
// Schemas of results allow additional fields, so that a client with an old list accepts
// the results of a newer cairn. call_tool only forwards: the called tool checks, counts and
// returns as if it had been called by its name. Calls by name also work for unlisted
// tools, because programs keep old lists. The address of a resource contains arguments;
// the SDK finds the resource without the query, whose parts come in any order.
//
// A server's own session is created by the first write that needs one, and ends with its
// transport. A rejected command does not create a store: it first runs on a store in
// memory. httpapi imports mcp, so that there is one list of tools and one argument parser.
// Metrics are written without a library: the planned one costs 0.1 ms at each start, and
// its histograms differ from Prometheus' own. gitleaks is in a separate module, so that its
// dependencies stay out.
package mcp
