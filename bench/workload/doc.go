// Package workload invents what coding agents do, for the benchmarks: sessions
// in projects, as the payloads of a hook and as transcripts. Nothing in it comes
// from anybody's real sessions; only the shares of tools, the lengths of texts
// and the sizes of responses are near those of Claude Code's transcripts.
package workload
