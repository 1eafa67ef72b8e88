//go:build unix

package regular

import "syscall"

// OpenFlags prevent an open from blocking on a FIFO and from acquiring a terminal.
const OpenFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
