// Package readtest reads payloads and transcripts for tests of single harnesses, through the table
// of all harnesses.
package readtest
