package disk

import "path/filepath"

// Volume is the volume of a store.
type Volume struct {
	Free    int64  // free bytes for this user
	Network bool   // on another machine, where SQLite's locks are not reliable
	Kind    string // the file system's name or number, "" if unknown
}

// Unwritable returns the paths whose permissions prevent this user from writing the store at a
// path: the folder, or its nearest existing ancestor, and the store's files. It is empty if
// the permissions suffice. It is also empty on systems such as Windows, where only an attempt
// to write shows it.
func Unwritable(path string) (out []string) {
	dir := filepath.Dir(path)
	for !Exists(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	for _, p := range []string{dir, path, path + "-wal", path + "-lock"} {
		if Exists(p) && !mayWrite(p) {
			out = append(out, p)
		}
	}
	return out
}

// VolumeOf describes the volume of a file or folder that exists. errors.ErrUnsupported
// means that the system does not provide this.
func VolumeOf(path string) (Volume, error) { return volumeOf(path) }
