//go:build !race

package harness

// raced says that the race detector is on, which triples a process's memory.
const raced = false
