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

// URIQuery is what a file's URI says after the question mark to open it with a
// key of KeySize bytes. The key itself is not in it: SQLite repeats names of files
// in its errors. It stays in the process, in a file system made for it.
func URIQuery(key []byte) string {
	sum := sha256.Sum256(append([]byte("cairn file system "), key...))
	name := "cairn-" + hex.EncodeToString(sum[:8])
	if vfs.Find(name) == nil {
		vfs.Register(name, vfsadiantum.Wrap(files{VFS: vfs.Find(""), encrypted: true}, keyed{[KeySize]byte(key)}))
	}
	return "vfs=" + name + "&textkey=held"
}

// PlainURIQuery is URIQuery for a file that is not encrypted. SQLite's own file system in
// this library lets other users read the files that it creates; this one does not.
func PlainURIQuery() string {
	const name = "cairn-plain"
	if vfs.Find(name) == nil {
		vfs.Register(name, files{VFS: vfs.Find("")})
	}
	return "vfs=" + name
}

// keyed gives files their gosqlite.
type keyed struct{ key [KeySize]byte }

// KDF is asked for the key of a file that has a name, and of one that has none.
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

// files is the file system below the encryption: the operating system's, with
// files that are their owner's alone and, below an encryption, a write-ahead log whose
// blocks are written and read whole.
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
		// As SQLite's own file system does: what cannot be written may be read.
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

// systemFile is what a file of the operating system can do and SQLite makes use of.
type systemFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FileSharedMemory
	Fd() uintptr
}

// plainFile is what lies on the disk. It tells a full volume from a broken one,
// which the library does not manage.
type plainFile struct{ systemFile }

func (f plainFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.systemFile.WriteAt(p, off)
	if isFull(err) {
		err = vfs.SystemError(err, sqlite3.FULL)
	}
	return n, err
}

// DeviceCharacteristics are without atomic batches, which the encryption offers
// without passing on how they are made.
func (f plainFile) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return f.systemFile.DeviceCharacteristics() &^ vfs.IOCAP_BATCH_ATOMIC
}

// mainFile is a database file. The shared memory next to it, which holds numbers
// of pages only, is made before SQLite makes it with wider rights.
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

// makePrivate makes a missing file, for the owner of its database alone.
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

// log is a write-ahead log. Its pages do not lie on the borders of blocks, so
// that appending one rewrites the block in which the page before it ends, which
// another process may be reading at this moment. Without encryption that harms
// nobody, as the bytes it reads stay the same. Here a block read half old and half
// new would decrypt to noise: so each is locked while it is read or written.
type log struct{ plainFile }

func (l *log) ReadAt(p []byte, off int64) (n int, err error) {
	if err := lock(l.Fd(), false, off, len(p)); err != nil {
		return 0, err
	}
	n, err = l.plainFile.ReadAt(p, off) // io.EOF must stay what it is
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

// header is how every SQLite file begins.
const header = "SQLite format 3\x00"

// The sizes of a block and of the number that makes blocks differ by their place.
const (
	blockSize = 4096
	tweakSize = 8
)

// Opens reports whether the first block of a file is that of a database under a
// key. Fewer bytes than a block are not.
func Opens(block, key []byte) bool {
	if len(block) < blockSize || len(key) != KeySize {
		return false
	}
	first := blocks{cipher: adiantum.New(key)}
	return IsPlain(first.decrypt(append([]byte(nil), block[:blockSize]...), 0))
}

// IsPlain reports whether a file that begins with these bytes is a database that
// is not encrypted.
func IsPlain(start []byte) bool { return bytes.HasPrefix(start, []byte(header)) }
