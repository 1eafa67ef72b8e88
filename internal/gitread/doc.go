// Package gitread asks the git program about the history of a working tree: who
// wrote a line, and which commits changed a file. It starts git with arguments
// only, never a shell, bounds its time and output, reads nothing from the network
// and changes nothing. The hook must not use it (contract observations §1).
package gitread
