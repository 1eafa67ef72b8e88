// Package workload generates the actions of coding agents for the benchmarks: sessions in
// projects, as hook payloads and as transcripts. It contains nothing from real sessions. Only
// the shares of tools, the lengths of texts and the sizes of responses are similar to Claude
// Code's transcripts.
package workload
