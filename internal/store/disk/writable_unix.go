//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package disk

import "syscall"

// mayWrite reports whether the permissions of a file or folder let this user write it.
func mayWrite(path string) bool {
	const toWrite = 2
	return syscall.Access(path, toWrite) == nil
}
