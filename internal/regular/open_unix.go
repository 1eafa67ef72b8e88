//go:build unix

package regular

import "syscall"

// OpenFlags keep an open from blocking on a FIFO and from taking a terminal over.
const OpenFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
