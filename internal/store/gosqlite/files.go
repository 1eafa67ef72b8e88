package gosqlite

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/util/vfsutil"
	"github.com/ncruces/go-sqlite3/vfs"
	vfsadiantum "github.com/ncruces/go-sqlite3/vfs/adiantum"
	"lukechampine.com/adiantum"
	"lukechampine.com/adiantum/hbsh"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// URIQuery returns the query of a URI that opens a file with a key of KeySize bytes. The
// key itself is not in it, because SQLite repeats file names in its errors. The key stays
// in the process, in a file system created for it.
func URIQuery(key []byte) string {
	sum := sha256.Sum256(append([]byte("cairn file system "), key...))
	name := "cairn-" + hex.EncodeToString(sum[:8])
	if vfs.Find(name) == nil {
		vfs.Register(name, vfsadiantum.Wrap(files{VFS: vfs.Find(""), encrypted: true}, keyed{[KeySize]byte(key)}))
	}
	return "vfs=" + name + "&textkey=held"
}

// PlainURIQuery is URIQuery for an unencrypted file. With SQLite's own file system in
// this library, other users could read the files that it creates; with this one they
// cannot.
func PlainURIQuery() string {
	const name = "cairn-plain"
	if vfs.Find(name) == nil {
		vfs.Register(name, files{VFS: vfs.Find("")})
	}
	return "vfs=" + name
}

// keyed provides the key for encrypted files.
type keyed struct{ key [KeySize]byte }

// KDF returns the key of a named file, and a random key for a file without a name.
func (k keyed) KDF(name string) []byte {
	if name != "" {
		return k.key[:]
	}
	key := make([]byte, KeySize)
	if _, err := rand.Read(key); err != nil {
		return nil
	}
	return key
}

func (k keyed) HBSH(key []byte) *hbsh.HBSH {
	if len(key) != KeySize {
		return nil
	}
	return adiantum.New(key)
}

// files is the file system below the encryption: that of the operating system, but files
// are readable only by their owner. Below an encryption it reads and writes whole blocks
// of a write-ahead log.
type files struct {
	vfs.VFS
	encrypted bool
}

func (f files) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name != nil && flags&vfs.OPEN_CREATE != 0 {
		_ = makePrivate(name.String()) // where that is not possible SQLite will say so
	}
	file, opened, err := vfsutil.WrapOpenFilename(f.VFS, name, flags)
	if name != nil && flags&vfs.OPEN_READWRITE != 0 && cannotWrite(err) {
		// Like SQLite's own file system: a file that cannot be written is opened for
		// reading.
		file, opened, err = vfsutil.WrapOpenFilename(f.VFS, name, flags&^(vfs.OPEN_READWRITE|vfs.OPEN_CREATE)|vfs.OPEN_READONLY)
	}
	if err != nil {
		return nil, opened, err
	}
	system, ok := file.(systemFile)
	if !ok {
		return nil, opened, errors.Join(errors.New("a file of the operating system lacks a method"), file.Close())
	}
	plain := plainFile{system}
	switch {
	case f.encrypted && flags&vfs.OPEN_WAL != 0:
		return &log{plain}, opened, nil
	case flags&vfs.OPEN_MAIN_DB != 0:
		return &mainFile{plain, name.String() + "-shm"}, opened, nil
	}
	return plain, opened, nil
}

func cannotWrite(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// systemFile contains the methods of the operating system's files that SQLite uses.
type systemFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FileSharedMemory
	Fd() uintptr
}

// plainFile is a file on disk. It distinguishes a full volume from other errors, which
// the library does not.
type plainFile struct{ systemFile }

func (f plainFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.systemFile.WriteAt(p, off)
	if isFull(err) {
		err = vfs.SystemError(err, sqlite3.FULL)
	}
	return n, err
}

// DeviceCharacteristics excludes atomic batches: the encryption would offer them but does
// not pass on their calls.
func (f plainFile) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return f.systemFile.DeviceCharacteristics() &^ vfs.IOCAP_BATCH_ATOMIC
}

// mainFile is a database file. It creates the shared memory file next to it, which
// contains only page numbers, before SQLite creates it with wider permissions.
type mainFile struct {
	plainFile
	shared string // "" once it is there, as it then stays while this file is open
}

func (m *mainFile) SharedMemory() vfs.SharedMemory {
	shared := m.plainFile.SharedMemory()
	if shared != nil && m.shared != "" && m.LockState() != vfs.LOCK_NONE {
		_ = makePrivate(m.shared) // likewise
		m.shared = ""
	}
	return shared
}

// makePrivate creates a missing file that only the owner of its database can access.
func makePrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), giveToOwner(path))
}

// log is a write-ahead log. Its pages are not aligned to blocks, so appending a page
// rewrites the block in which the previous page ends, while another process may be
// reading it. Without encryption that is harmless, because the bytes do not change. With
// encryption a half-written block would decrypt to noise. So each block is locked while
// it is read or written.
type log struct{ plainFile }

func (l *log) ReadAt(p []byte, off int64) (n int, err error) {
	if err := lock(l.Fd(), false, off, len(p)); err != nil {
		return 0, err
	}
	n, err = l.plainFile.ReadAt(p, off) // io.EOF must be returned unchanged
	if failed := unlock(l.Fd(), off, len(p)); failed != nil {
		err = failed
	}
	return n, err
}

func (l *log) WriteAt(p []byte, off int64) (n int, err error) {
	if err := lock(l.Fd(), true, off, len(p)); err != nil {
		return 0, err
	}
	n, err = l.plainFile.WriteAt(p, off)
	if failed := unlock(l.Fd(), off, len(p)); failed != nil && err == nil {
		err = failed
	}
	return n, err
}

// header is the beginning of every SQLite file.
const header = "SQLite format 3\x00"

// Sizes of a block and of its tweak, the number that makes equal blocks differ by offset.
const (
	BlockSize = 4096
	tweakSize = 8
)

// Opens reports whether the first block of a file is that of a database under a key. It
// is false for less than a block.
func Opens(block, key []byte) bool {
	if len(block) < BlockSize || len(key) != KeySize {
		return false
	}
	first := blocks{cipher: adiantum.New(key)}
	return IsPlain(first.decrypt(append([]byte(nil), block[:BlockSize]...), 0))
}

// IsPlain reports whether a file that begins with these bytes is an unencrypted database.
func IsPlain(start []byte) bool { return bytes.HasPrefix(start, []byte(header)) }
