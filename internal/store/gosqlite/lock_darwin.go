package gosqlite

// setLockWait waits for a lock of an open file, not of a process: Apple's F_OFD_SETLKW,
// which the system package does not define.
const setLockWait = 91
