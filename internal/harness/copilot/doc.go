// Package copilot describes Copilot CLI: its hooks, its settings and its transcripts.
package copilot
