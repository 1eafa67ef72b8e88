// Package claude describes Claude Code: its hooks, its settings and its transcripts.
//
// Its payloads and tools are the common ones, so package harness reads most of them. The
// transcripts are in its own format: lines of one conversation, with those of subagents in between
// or in files of their own.
package claude
