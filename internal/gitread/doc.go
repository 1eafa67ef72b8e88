// Package gitread reads the Git history of a working tree: who wrote a line, and which
// commits changed a file. It runs the git program with arguments only, never a shell, and
// limits its time and output. It does not use the network and changes nothing. The hook
// must not use it (contract observations §1).
package gitread
