// Package codex describes Codex: its hooks, its settings and its transcripts, the rollouts.
//
// Its events have Claude Code's names. Its tools differ: commands are lists of words, and edits are
// patches of several files.
package codex
