//go:build race

package harnesstest

// Raced reports whether the race detector is on, which triples a process's memory.
const Raced = true
