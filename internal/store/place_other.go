//go:build !unix

package store

import "os"

// fileNumber returns "": the system's file numbers are not used.
func fileNumber(os.FileInfo) string { return "" }
