//go:build unix

package regular

import "syscall"

// openFlags keep an open from blocking on a FIFO and from taking a terminal over.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
