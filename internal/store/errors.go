package store

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"cairn/internal/fault"
	"cairn/internal/store/gosqlite"
	"cairn/internal/store/locks"
)

// Error codes of this package.
const (
	CodeCorrupt  = "store_corrupt"   // the file is damaged or not an SQLite file
	CodeNewer    = "store_newer"     // written by a newer cairn
	CodeBusy     = "store_busy"      // no write lock within the busy timeout
	CodeFull     = "disk_full"       // the volume is full
	CodeReadOnly = "store_read_only" // file or folder cannot be written
	CodeMissing  = "store_missing"   // there is no store yet
	CodeClosed   = "stopping"        // the store is closing
	CodeIO       = "store_io"        // the volume failed

	CodeKey        = "store_key"        // the key is missing, unusable or wrong
	CodeEncrypted  = "store_encrypted"  // encrypted, but a plain store is expected
	CodeDriver     = "store_driver"     // encrypted, and this program's SQLite cannot open it
	CodeInUse      = "store_in_use"     // another process keeps the store open
	CodeUnsound    = "store_unsound"    // a check before a change found damage
	CodeReplaced   = "store_replaced"   // another file is now at the store's path
	CodeForeign    = "store_foreign"    // another program's database
	CodeOverloaded = "store_overloaded" // too many writes are waiting
)

// SQLite's primary result codes that are relevant to users.
const (
	resPerm      = 3
	resBusy      = 5
	resLocked    = 6
	resNoMem     = 7
	resReadOnly  = 8
	resInterrupt = 9
	resIOErr     = 10
	resCorrupt   = 11
	resFull      = 13
	resCantOpen  = 14
	resNotADB    = 26

	resIOErrShmSize = resIOErr | 19<<8
)

// resultCode returns SQLite's extended result code of err, 0 if err is not SQLite's.
func resultCode(err error) (code int, message string) {
	if code, message = plainCode(err); code == 0 {
		code, message = gosqlite.Code(err)
	}
	return code, message
}

// endsTransaction reports whether SQLite may undo a whole transaction when a
// statement in it fails with this code.
func endsTransaction(code int) bool {
	switch code & 0xff {
	case resNoMem, resInterrupt, resIOErr, resCorrupt, resFull:
		return true
	}
	return false
}

// classify converts errors of SQLite and of the file system to faults. It returns faults,
// cancelled contexts and errors of callers unchanged.
func classify(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if code, message := resultCode(err); code != 0 {
		return classifyResult(err, code, message)
	}
	switch {
	case errors.Is(err, locks.ErrNotGranted):
		return locked(err)
	case errors.Is(err, syscall.ENOSPC):
		return diskFull(err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR):
		return notWritable(err)
	}
	return err
}

func classifyResult(err error, code int, message string) error {
	if errors.Is(err, syscall.ENOSPC) { // the encrypting driver's code does not show a full disk
		return diskFull(err)
	}
	switch code & 0xff {
	case resBusy, resLocked:
		return locked(err)
	case resReadOnly, resPerm, resCantOpen:
		return notWritable(err)
	case resFull:
		return diskFull(err)
	case resCorrupt, resNotADB:
		return fault.Wrap(err, fault.Internal, CodeCorrupt, "the store is damaged: "+message).
			WithHint("run `cairn doctor --salvage`")
	case resIOErr:
		if code == resIOErrShmSize { // no space for the shared memory file
			return diskFull(err)
		}
		return fault.Wrap(err, fault.Unavailable, CodeIO, message)
	}
	return fault.Wrap(err, fault.Internal, "database_error", message)
}

func diskFull(err error) error {
	return fault.Wrap(err, fault.Unavailable, CodeFull, "disk full").
		WithHint("free some space on the volume of the data directory")
}

func notWritable(err error) error {
	return fault.Wrap(err, fault.Unavailable, CodeReadOnly, "cannot write").
		WithHint("check the permissions of the data directory and its files")
}

func locked(err error) error {
	return fault.Wrap(err, fault.Unavailable, CodeBusy, "database is locked").
		WithHint("another process is writing; try again")
}

func stopping() error {
	return fault.New(fault.Unavailable, CodeClosed, "cairn is stopping")
}
