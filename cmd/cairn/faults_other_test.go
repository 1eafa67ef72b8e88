//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// peakMemory returns 0: memory is not measured on this system.
func peakMemory(*os.ProcessState) int64 { return 0 }

// actAs is never called on this system.
func actAs(*exec.Cmd, uint32) {}

// faultsOfVolumes returns nil, because these faults cannot be created on this system.
func faultsOfVolumes() map[string]databaseFault { return nil }
