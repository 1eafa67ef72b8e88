//go:build unix

package repository

import "syscall"

// lowerPriority gives a process a lower priority than this process and its callers. If
// that is not allowed, the priority stays.
func lowerPriority(pid int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, 10) }
