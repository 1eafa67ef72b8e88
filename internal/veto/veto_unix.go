//go:build unix

package veto

import "syscall"

// leaveNoCore forbids core files. If that fails, the system's own limit applies.
func leaveNoCore() {
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
