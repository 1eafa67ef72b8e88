// Package findcmd contains the commands that answer questions about the past: recall, search, show,
// why, context and watch.
package findcmd
