package wiring

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/linediff"
)

// Action is the action taken on a file.
type Action string

// The actions. With DryRun they are the actions that Init would take.
const (
	Unchanged Action = "unchanged" // it was already correct
	Created   Action = "created"
	Changed   Action = "changed"
	Restored  Action = "restored" // byte for byte as before init
	Deleted   Action = "deleted"  // init had created it
	Cleaned   Action = "cleaned"  // changed by others since; only cairn's entries were removed
	Failed    Action = "failed"   // not changed; see Error
)

// Change is the result for one file.
type Change struct {
	Harness string `json:"harness"`
	Path    string `json:"path"`
	Action  Action `json:"action"`
	Error   string `json:"error,omitempty"`
	Diff    string `json:"diff,omitempty"` // unified; only for a dry run
}

// failed returns the change as Failed. It returns no error, because the other files can still be
// changed.
func (c Change) failed(err error) (Change, error) {
	c.Action, c.Error = Failed, err.Error()
	return c, nil
}

// Options are the options of Init.
type Options struct {
	Harnesses []string // harnesses to connect, found or not; nil for all that are found
	NoAssist  bool     // no help during the turn (observations §9.2)
	NoStatus  bool     // no status line
	DryRun    bool     // write nothing, not even the originals
}

// Result is the result of Init.
type Result struct {
	Harnesses []string `json:"harnesses"` // connected harnesses, in the order of Harnesses
	Files     []Change `json:"files"`
	Notes     []string `json:"notes"` // sentences for the user
}

// AnyFailed reports whether a file could not be edited.
func AnyFailed(files []Change) bool {
	return slices.ContainsFunc(files, func(c Change) bool { return c.Action == Failed })
}

// Init writes cairn's hooks and MCP server into the settings of the harnesses. It does not touch
// correct entries, so a second Init changes no byte. Before it changes a file, it stores the
// original in the data directory. After an interruption Init can be repeated, and Uninstall can
// undo it. A file that cannot be read or written is reported as Failed, and the other files are
// processed. An error means that the originals cannot be stored; nothing more was changed then.
// If no harness is found, the Result is empty (observations §15).
func Init(p Paths, o Options) (Result, error) {
	r := Result{Harnesses: []string{}, Files: []Change{}, Notes: []string{}}
	m, err := openManifest(p.DataDir)
	if err != nil {
		return r, err
	}
	for _, harness := range Harnesses() {
		if !o.wants(p, harness) {
			continue
		}
		r.Harnesses = append(r.Harnesses, harness)
		changed := false
		for _, s := range p.settingsOf(harness, parts{assist: !o.NoAssist, status: !o.NoStatus}) {
			c, err := m.wire(s, o.DryRun)
			if err != nil {
				return r, err
			}
			if c.Action != "" {
				r.Files = append(r.Files, c)
			}
			changed = changed || c.Action == Created || c.Action == Changed
		}
		r.Notes = append(r.Notes, p.notes(harness, changed)...)
	}
	return r, nil
}

func (o Options) wants(p Paths, harness string) bool {
	if len(o.Harnesses) == 0 {
		return p.Found(harness)
	}
	return slices.Contains(o.Harnesses, harness)
}

// attempts is the maximum number of attempts to edit a file that changes meanwhile.
const attempts = 5

var errBusy = errors.New("keeps changing; close the agent and try again")

// wire edits one file. The action is empty if the file does not exist and needs no content. Such
// a change is not reported.
func (m *manifest) wire(s settings, dryRun bool) (Change, error) {
	c := Change{Harness: s.harness, Path: s.path}
	path, err := target(s.path)
	if err != nil {
		return c.failed(err)
	}
	for range attempts {
		old, err := readFile(path)
		if err != nil {
			return c.failed(err)
		}
		text, err := s.edited(old)
		if err != nil {
			return c.failed(err)
		}
		switch {
		case bytes.Equal(old, text):
			if c.Action = Unchanged; old == nil {
				c.Action = ""
			}
			return c, nil
		case old == nil:
			c.Action = Created
		default:
			c.Action = Changed
		}
		if dryRun {
			c.Diff = diff(s.path, old, text)
			return c, nil
		}
		if err := m.prepare(s, path, old, text); err != nil {
			return c, err
		}
		if now, err := readFile(path); err != nil || !bytes.Equal(now, old) {
			continue // the agent wrote meanwhile
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return c.failed(cannotWrite(path, err))
		}
		if err := writeFile(path, text); err != nil {
			return c.failed(err)
		}
		return c, nil
	}
	return c.failed(errBusy)
}

// prepare stores a file's original, without cairn's entries, before text is written. It keeps a
// stored original if the file is unchanged since the last write. If others changed the file, the
// original is their text without cairn's entries.
func (m *manifest) prepare(s settings, path string, old, text []byte) error {
	m.Folders = append(m.Folders, missingFolders(path)...)
	r := record{Path: s.path, Harness: s.harness, Written: hash(text), Made: old == nil}
	if r.Made {
		return m.keep(r, nil)
	}
	known := m.find(s.path)
	original, err := m.original(known)
	if err != nil {
		original = nil // the original is lost, so cairn's entries are removed instead
	}
	if err == nil && known.left(old) {
		r.Made = known.Made
		return m.keep(r, original)
	}
	if original, err = s.stripped(old, original); err != nil {
		return err
	}
	r.Made = known != nil && known.Made && s.nothingLeft(original)
	return m.keep(r, original)
}

// diff returns a change in the format of `diff -u`.
func diff(path string, old, text []byte) string {
	before := path
	if old == nil {
		before = os.DevNull
	}
	return linediff.Unified(before, path, string(old), string(text))
}

// notes returns notes for the user about a connected harness. changed is true if one of its
// files was changed.
func (p Paths) notes(name string, changed bool) (notes []string) {
	h, _ := harnesses.Of(name)
	if p.pluginPresent(h) {
		return []string{h.Title + " has the cairn plugin, which brings hooks and MCP server; no second set was added"}
	}
	if changed && h.Hooks.Form.Trusted {
		notes = append(notes, h.Title+" runs new or changed hooks only after you trusted them: it asks at its next start, or open /hooks there")
	}
	files := p.settingsOf(name, allParts())
	if setting := hooksOff(h, files); setting != "" {
		notes = append(notes, fmt.Sprintf("%s's settings turn hooks off (%s); nothing is recorded until that is gone", h.Title, setting))
	}
	for _, f := range files {
		if f.hooks != nil && len(f.hooks.want) < len(h.Hooks.Wanted) {
			v, _ := p.versionOf(h)
			notes = append(notes, fmt.Sprintf("%s %d.%d.%d does not know all events yet; run cairn init again after its next update", h.Title, v[0], v[1], v[2]))
		}
	}
	for _, f := range files {
		if f.read().foreignStatusLine() {
			notes = append(notes, h.Title+" has a status line of your own, which stays; `cairn status --line` prints cairn's, for use in it")
		}
	}
	if h.Notice != "" {
		notes = append(notes, h.Notice)
	}
	return notes
}

// hooksOff returns the setting that disables hooks in a harness's files, "" if hooks are
// enabled. If several switches are set, the first one counts.
func hooksOff(h harness.Harness, files []settings) string {
	for _, w := range h.Hooks.Form.Switches {
		for _, f := range files {
			if value, set := f.read().value(w.Path); set {
				if value == w.Off {
					return strings.Join(w.Path, ".")
				}
				return ""
			}
		}
	}
	return ""
}
