//go:build !race

package harness

// raced reports whether the race detector is on, which triples a process's memory.
const raced = false
