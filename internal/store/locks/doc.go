// Package locks has the file locks of processes that share a store: the writers' queue, the
// lock of one file, and the check whether another process has a database open. The kernel
// releases the locks of a process that dies.
package locks
