//go:build !linux && !darwin && !windows

package store

import "errors"

func volumeOf(string) (Volume, error) { return Volume{}, errors.ErrUnsupported }
