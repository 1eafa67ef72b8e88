package wiring

import (
	"bytes"
	"os"
	"path/filepath"

	"cairn/internal/fault"
	"cairn/internal/harness"
)

// Uninstall undoes Init in every harness. A file that is unchanged since Init gets its original
// back byte for byte, or is deleted with its folders if Init created it. From a file that was
// changed since, or that Init does not know, Uninstall removes only cairn's entries. Files that
// it must not touch are not listed. A file that cannot be read or written is Failed and its
// original stays stored; the other files are processed. It is safe to retry, also after an
// interruption (observations §15).
func Uninstall(p Paths) ([]Change, error) {
	out := []Change{}
	m, err := openManifest(p.DataDir)
	if err != nil {
		return out, err
	}
	files := map[string]bool{}
	for _, name := range Harnesses() {
		for _, s := range p.settingsOf(name, allParts()) {
			files[s.path] = true
			c, err := m.unwire(s)
			if err != nil {
				return out, err
			}
			if c.Action != Unchanged {
				out = append(out, c)
			}
		}
	}
	// These files are in folders that the settings of Init named, but the current ones do not.
	for _, r := range append([]record(nil), m.Files...) {
		if files[r.Path] {
			continue
		}
		s, ok := p.settingsAt(r)
		if !ok {
			continue
		}
		c, err := m.unwire(s)
		if err != nil {
			return out, err
		}
		if c.Action != Unchanged {
			out = append(out, c)
		}
	}
	return out, m.close(p.DataDir)
}

// settingsAt returns the wanted content of a file that was connected at a different path.
func (p Paths) settingsAt(r record) (settings, bool) {
	for _, s := range p.settingsOf(r.Harness, allParts()) {
		if filepath.Base(s.path) == filepath.Base(r.Path) {
			s.path = r.Path
			return s, true
		}
	}
	return settings{}, false
}

// unwire undoes one file.
func (m *manifest) unwire(s settings) (Change, error) {
	c := Change{Harness: s.harness, Path: s.path, Action: Unchanged}
	path, err := target(s.path)
	if err != nil {
		return c.failed(err)
	}
	for range attempts {
		now, err := readFile(path)
		if err != nil {
			return c.failed(err)
		}
		if now == nil {
			return c, m.forget(s.path)
		}
		action, text, err := m.undo(s, now)
		if err != nil {
			return c.failed(err)
		}
		if again, err := readFile(path); err != nil || !bytes.Equal(again, now) {
			continue // the agent wrote meanwhile
		}
		switch c.Action = action; action {
		case Deleted:
			err = cannotWrite(path, os.Remove(path))
		case Restored, Cleaned:
			err = writeFile(path, text)
		}
		if err != nil {
			return c.failed(err)
		}
		return c, m.forget(s.path)
	}
	return c.failed(errBusy)
}

// undo returns the action for a file, and the file's new text if the file stays.
func (m *manifest) undo(s settings, now []byte) (Action, []byte, error) {
	r := m.find(s.path)
	original, err := m.original(r)
	switch {
	case s.format == harness.Script && !isOurs(now):
		return Unchanged, now, nil // the file is no longer cairn's
	case s.format == harness.Script && (r == nil || r.Made || err != nil):
		return Deleted, nil, nil
	}
	if err == nil && r.left(now) {
		if r.Made {
			return Deleted, nil, nil
		}
		return Restored, original, nil
	}
	if err != nil {
		original = nil // the original is lost, so cairn's entries are removed
	}
	text, err := s.stripped(now, original)
	switch {
	case err != nil && r == nil && !mayContainCairn(now):
		return Unchanged, now, nil
	case err != nil:
		return Failed, nil, err
	case r != nil && r.Made && s.nothingLeft(text):
		return Deleted, nil, nil
	case bytes.Equal(text, now):
		return Unchanged, now, nil
	case original != nil && bytes.Equal(text, original):
		return Restored, text, nil
	}
	return Cleaned, text, nil
}

// mayContainCairn reports whether an unparsable file, which init never changed, could still
// contain an entry of cairn.
func mayContainCairn(text []byte) bool {
	return bytes.Contains(text, []byte(serverName)) &&
		(bytes.Contains(text, []byte("record")) || bytes.Contains(text, []byte("serve")))
}

// Purge deletes the data directory with its content. It refuses the home directory, the root of
// a file system and a folder with a repository. A wrong CAIRN_HOME could name them (observations
// §15).
func Purge(p Paths) error {
	dir := p.DataDir
	if isRoot(dir) || sameFile(dir, p.Home) || holds(dir, ".git") {
		return fault.New(fault.Denied, "not_ours", dir+" is more than cairn's data directory").
			WithHint("delete what is cairn's in it yourself")
	}
	return os.RemoveAll(dir)
}
