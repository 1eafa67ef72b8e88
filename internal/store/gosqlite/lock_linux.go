package gosqlite

import "golang.org/x/sys/unix"

// setLockWait locks for an open file, not for a process, and waits.
const setLockWait = unix.F_OFD_SETLKW
