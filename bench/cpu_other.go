//go:build !unix

package main

import "time"

// ownCPU returns 0: this system does not report it.
func ownCPU() time.Duration { return 0 }
