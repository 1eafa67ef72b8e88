//go:build unix

package store

import (
	"os"
	"strconv"
	"syscall"
)

// fileNumber returns a file's inode number.
func fileNumber(info os.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(stat.Ino, 10)
}
