//go:build !linux

package store_test

import "errors"

func runLinuxChild(string, order) error { return errors.New("no such child") }
