//go:build unix

package gosqlite

import (
	"os"
	"strings"
	"syscall"
)

// giveToOwner changes the owner of a database's file to the owner of the database, like
// SQLite. Otherwise files that root creates next to another user's store lock that user
// out.
func giveToOwner(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, suffix := range []string{"-wal", "-shm", "-journal"} {
		database, ok := strings.CutSuffix(path, suffix)
		if !ok {
			continue
		}
		info, err := os.Stat(database)
		if err != nil {
			return err
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			return os.Chown(path, int(owner.Uid), int(owner.Gid))
		}
	}
	return nil
}
