package gosqlite

import "golang.org/x/sys/unix"

// setLockWait waits for a lock of an open file, not of a process.
const setLockWait = unix.F_OFD_SETLKW
