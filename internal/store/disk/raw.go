package disk

import (
	"errors"
	"os"

	"cairn/internal/sqlitefile"
	"cairn/internal/store/gosqlite"
)

// Raw is a store's database file and write-ahead log, to be read without SQLite.
type Raw struct {
	Path    string
	Key     []byte   // nil for a plain store
	DB, Log *os.File // nil if missing
}

// OpenRaw opens the files of the store at path that exist, with a flag of [os.OpenFile].
func OpenRaw(path string, key []byte, flag int) (*Raw, error) {
	r := &Raw{Path: path, Key: key}
	for suffix, into := range map[string]**os.File{"": &r.DB, "-wal": &r.Log} {
		f, err := os.OpenFile(path+suffix, flag, 0)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		*into = f
	}
	return r, nil
}

// Close closes the files, except those that are closed already.
func (r *Raw) Close() error { return CloseAll(r.DB, r.Log) }

// CloseAll closes the files that are neither nil nor closed.
func CloseAll(files ...*os.File) (err error) {
	for _, f := range files {
		if f == nil {
			continue
		}
		if cerr := f.Close(); !errors.Is(cerr, os.ErrClosed) {
			err = errors.Join(err, cerr)
		}
	}
	return err
}

// Image reads both files.
func (r *Raw) Image() (*sqlitefile.Image, error) {
	db, log, err := r.files()
	if err != nil {
		return nil, err
	}
	return sqlitefile.Read(db, log), nil
}

// Head reads only the header, from the log if the log contains it.
func (r *Raw) Head() (sqlitefile.Head, error) {
	db, log, err := r.files()
	return sqlitefile.ReadHead(db, log), err
}

func (r *Raw) files() (db, log sqlitefile.File, err error) {
	if db, err = r.fileOf(r.DB); err == nil {
		log, err = r.fileOf(r.Log)
	}
	return db, log, err
}

// fileOf returns a file for sqlitefile, decrypted if necessary; nil means a missing file.
func (r *Raw) fileOf(f *os.File) (sqlitefile.File, error) {
	if f == nil {
		return sqlitefile.File{}, nil
	}
	info, err := f.Stat()
	if err != nil {
		return sqlitefile.File{}, err
	}
	if r.Key != nil {
		return sqlitefile.File{ReaderAt: gosqlite.NewReader(f, r.Key), Size: gosqlite.Whole(info.Size())}, nil
	}
	return sqlitefile.File{ReaderAt: f, Size: info.Size()}, nil
}
