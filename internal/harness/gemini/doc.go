// Package gemini describes Gemini CLI, and Qwen Code, which was made from it: hooks, settings and
// transcripts.
//
// Both have the same tools and results. Qwen Code sends them in Claude Code's events. Gemini CLI's
// hooks send no call ids, so equal content identifies the same call (observation.Match).
package gemini
