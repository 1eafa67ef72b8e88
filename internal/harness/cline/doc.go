// Package cline describes Cline: its hooks, its settings and its conversations.
//
// The hooks report calls, but neither the first prompt nor replies. Both are read from the
// conversation's file.
package cline
