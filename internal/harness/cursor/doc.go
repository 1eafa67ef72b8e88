// Package cursor describes Cursor: its hooks, its settings and its transcripts.
//
// The transcripts contain neither ids nor results, and times only in minutes, so equal content
// identifies the same call (observation.Match). They do not show whether a call failed.
package cursor
