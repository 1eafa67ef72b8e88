//go:build !linux && !darwin && !windows

package cipher

import "errors"

// lock refuses: an encrypted store cannot be shared safely here.
func lock(uintptr, bool, int64, int) error { return errors.ErrUnsupported }

func unlock(uintptr, int64, int) error { return errors.ErrUnsupported }
