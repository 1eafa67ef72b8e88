package gosqlite

// setLockWait locks for an open file, not for a process, and waits: Apple's
// F_OFD_SETLKW, which the system package does not name.
const setLockWait = 91
