//go:build unix

package main

import (
	"os"
	"runtime"

	"cairn/internal/mail"
)

// faultsOfVolumes are those of the disk under the database. Where they cannot be made
// the test is skipped.
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

// makeReadOnly takes the right to write the database from its user. A process that
// has it open keeps the log next to it, which would else be made with these rights.
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
