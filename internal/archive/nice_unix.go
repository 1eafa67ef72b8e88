//go:build unix

package archive

import "syscall"

// lowerPriority lets a process run when the machine has nothing more urgent to do, callers of
// this one above all. Where that is not allowed the process runs as any other.
func lowerPriority(pid int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, 10) }
