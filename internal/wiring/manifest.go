package wiring

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/fault"
	"cairn/internal/regular"
)

// CodeManifest is the error code for an unreadable list of originals.
const CodeManifest = "invalid_manifest"

// manifest is the list of changes, used to undo them. It is written before each change. The
// originals are stored next to it, named by their hash (observations §15).
type manifest struct {
	dir     string
	Files   []record `json:"files"`
	Folders []string `json:"folders"` // created folders, outer before inner
}

// record is one file that init changed.
type record struct {
	Path     string `json:"path"`
	Harness  string `json:"harness"`
	Made     bool   `json:"made"`     // init created the file
	Original string `json:"original"` // hash of the text without cairn's entries, "" if made
	Written  string `json:"written"`  // hash of the last written text
}

// left reports whether a text equals the last written text. r is nil for a file that was never
// written.
func (r *record) left(text []byte) bool { return r != nil && hash(text) == r.Written }

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// openManifest reads the list in the data directory. A missing list is empty.
func openManifest(dataDir string) (*manifest, error) {
	m := &manifest{dir: filepath.Join(dataDir, "wiring")}
	path := filepath.Join(m.dir, "manifest.json")
	data, err := regular.Read(path, regular.MaxForeign)
	if errors.Is(err, fs.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, m)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, CodeManifest, "the list of original settings cannot be read").
			WithHint("look at " + path + "; the originals lie beside it")
	}
	return m, nil
}

func (m *manifest) find(path string) *record {
	i := slices.IndexFunc(m.Files, func(r record) bool { return r.Path == path })
	if i < 0 {
		return nil
	}
	return &m.Files[i]
}

// original returns a record's original text, nil if the file did not exist.
func (m *manifest) original(r *record) ([]byte, error) {
	if r == nil || r.Made {
		return nil, nil
	}
	text, err := regular.Read(m.originalPath(r.Original), regular.MaxForeign)
	if err == nil && hash(text) != r.Original {
		err = errors.New("the kept original of " + r.Path + " is damaged")
	}
	return text, err
}

func (m *manifest) originalPath(hash string) string { return filepath.Join(m.dir, hash+".original") }

// keep records the next content of a file, and stores its original if it has one.
func (m *manifest) keep(r record, original []byte) error {
	if err := os.MkdirAll(m.dir, 0o700); err != nil {
		return cannotWrite(m.dir, err)
	}
	if !r.Made {
		r.Original = hash(original)
		if err := writeFile(m.originalPath(r.Original), original); err != nil {
			return err
		}
	}
	if old := m.find(r.Path); old != nil {
		*old = r
	} else {
		m.Files = append(m.Files, r)
	}
	return m.save()
}

// forget removes the record of a file that has its original state again.
func (m *manifest) forget(path string) error {
	before := len(m.Files)
	m.Files = slices.DeleteFunc(m.Files, func(r record) bool { return r.Path == path })
	if len(m.Files) == before {
		return nil
	}
	return m.save()
}

func (m *manifest) save() error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(m.dir, "manifest.json"), append(data, '\n')); err != nil {
		return err
	}
	return m.sweep()
}

// sweep deletes originals without a record.
func (m *manifest) sweep() error {
	kept, err := filepath.Glob(filepath.Join(m.dir, "*.original"))
	if err != nil {
		return err
	}
	for _, path := range kept {
		named := slices.ContainsFunc(m.Files, func(r record) bool { return m.originalPath(r.Original) == path })
		if !named {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// close deletes an empty list. It also deletes the created folders and the data directory, if
// they are empty.
func (m *manifest) close(dataDir string) error {
	if len(m.Files) > 0 {
		return nil
	}
	removeEmpty(m.Folders)
	err := os.RemoveAll(m.dir)
	removeEmpty([]string{dataDir})
	return err
}
