//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// peakMemory is not measured here.
func peakMemory(*os.ProcessState) int64 { return 0 }

// actAs is never called here.
func actAs(*exec.Cmd, uint32) {}

// faultsOfVolumes cannot be made here.
func faultsOfVolumes() map[string]databaseFault { return nil }
