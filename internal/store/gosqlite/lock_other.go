//go:build !linux && !darwin && !windows

package gosqlite

import (
	"errors"
	"syscall"
)

// lock returns an error: an encrypted store cannot be shared safely on this system.
func lock(uintptr, bool, int64, int) error { return errors.ErrUnsupported }

func unlock(uintptr, int64, int) error { return errors.ErrUnsupported }

// isFull reports whether an error means that the volume is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) }
