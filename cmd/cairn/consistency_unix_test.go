//go:build unix

package main

import (
	"os"
	"runtime"

	"cairn/internal/mail"
)

// faultsOfVolumes returns the faults of the disk under the database. The test is skipped where they
// cannot be created.
func faultsOfVolumes() map[string]databaseFault {
	all := map[string]databaseFault{
		"the file is read-only": {
			code: mail.CodeDatabase, anew: true,
			prepare: func(h *home) {
				if !h.asNobody() {
					h.t.Skip("this user's programs cannot be run by another one")
				}
			},
			make: (*town).makeReadOnly,
		},
	}
	if runtime.GOOS == "linux" {
		all["the volume is full"] = databaseFault{
			code: mail.CodeDiskFull, prepare: (*home).onSmallVolume, make: (*town).fillVolume,
		}
	}
	return all
}

// makeReadOnly removes the user's write permission for the database. A process with the database
// open keeps the log in place; otherwise a new log would get these permissions.
func (w *town) makeReadOnly() (gone func()) {
	db := w.raw()
	w.sqlite(db, "SELECT count(*) FROM changes")
	w.protect(0o700, 0o400)
	return func() {
		if err := os.Chmod(w.db(), 0o600); err != nil {
			w.t.Error(err)
		}
		w.closes(db)
	}
}
