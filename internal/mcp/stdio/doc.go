// Package stdio carries JSON-RPC messages over standard input and output, one in each line,
// for a client that starts cairn.
//
// A line that is not a message gets an error, and the session continues. At the end of the
// input, running calls get their responses before the session ends.
package stdio
