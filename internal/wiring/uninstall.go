package wiring

import (
	"bytes"
	"os"
	"path/filepath"

	"cairn/internal/fault"
	"cairn/internal/harness"
)

// Uninstall undoes Init in every harness: a file that is as Init left it gets its
// original back byte for byte, or is deleted with its folders if Init made it; of
// one that was changed since, and of one that Init does not know, only our
// entries are taken out. Files that are not ours to touch are not listed. A file
// that cannot be read or written is Failed and its original stays kept; the
// others are done. It is safe to retry, also after an interruption
// (observations §15).
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
	// Files of folders that were named when init ran and are not now.
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

// settingsAt is what stands in a file that was wired at another place.
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

// undo is what becomes of a file, and its text if it stays.
func (m *manifest) undo(s settings, now []byte) (Action, []byte, error) {
	r := m.find(s.path)
	original, err := m.original(r)
	switch {
	case s.format == harness.Script && !isOurs(now):
		return Unchanged, now, nil // somebody else's by now
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
		original = nil // lost: what is ours is taken out
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

// mayContainCairn reports whether a file that cannot be parsed, and that init never
// changed, could have an entry of ours anyway.
func mayContainCairn(text []byte) bool {
	return bytes.Contains(text, []byte(serverName)) &&
		(bytes.Contains(text, []byte("record")) || bytes.Contains(text, []byte("serve")))
}

// Purge deletes the data directory with everything in it. It refuses the home
// directory, a file system's root and a folder with a repository, which a wrong
// CAIRN_HOME may name (observations §15).
func Purge(p Paths) error {
	dir := p.DataDir
	if isRoot(dir) || sameFile(dir, p.Home) || holds(dir, ".git") {
		return fault.New(fault.Denied, "not_ours", dir+" is more than cairn's data directory").
			WithHint("delete what is cairn's in it yourself")
	}
	return os.RemoveAll(dir)
}
