package githook

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cairn/internal/fault"
)

// The hooks that can be guarded.
const (
	PreCommit = "pre-commit"
	PrePush   = "pre-push"
)

// Error codes of this package.
const (
	CodeFolder  = "hooks_folder"  // the hooks folder cannot be used
	CodeChanged = "hook_changed"  // one of cairn's files was edited
	CodeInUse   = "hook_occupied" // all names for the original hook are in use
)

// guardName is the file of the guard in hooks.d/HOOK.
const guardName = "50-cairn"

// Guard is a guard at one hook.
type Guard struct {
	Dir     string   // hooks folder, absolute
	Hook    string   // PreCommit or PrePush
	Program string   // path of cairn, absolute
	Project string   // project whose reservations are checked; "" for the repository's own
	Staged  []string // git arguments that print the staged files; only for PreCommit
}

// Path returns the file that git runs.
func (g Guard) Path() string { return filepath.Join(g.Dir, g.Hook) }

func (g Guard) programs() string { return filepath.Join(g.Dir, "hooks.d", g.Hook) }
func (g Guard) guard() string    { return filepath.Join(g.programs(), guardName) }

// Install installs the guard. The original hook is kept and runs last. Install is idempotent; a
// different program or project updates the guard. A complete hook exists at any time, so Install
// is safe to retry after a kill.
//
// Errors: CodeFolder (Unavailable) if the folder cannot be written; CodeChanged (Conflict) if
// the guard's script was edited; CodeInUse (Conflict) if no name is left for the original hook.
func (g Guard) Install() error {
	if err := g.checkGuard(); err != nil {
		return err
	}
	if err := os.MkdirAll(g.programs(), 0o755); err != nil {
		return g.unusable(err)
	}
	if err := put(g.guard(), g.guardText()); err != nil {
		return g.unusable(err)
	}
	was, err := read(g.Path())
	if err != nil {
		return g.unusable(err)
	}
	if body, intact, ours := bodyOf(was.text, chainMark); ours {
		if !intact {
			return nil // edited by hand: leave it
		}
		orig := origOf(body)
		return g.putChain(orig)
	}
	orig := ""
	if was.there {
		if orig, err = g.keep(was); err != nil {
			return err
		}
	}
	return g.putChain(orig)
}

// putChain replaces the hook with the chain.
func (g Guard) putChain(orig string) error {
	sourced := false
	if orig != "" {
		kept, err := read(filepath.Join(g.Dir, orig))
		if err != nil {
			return g.unusable(err)
		}
		sourced = mustBeSourced(kept.text)
	}
	if err := put(g.Path(), chainText(g.Hook, orig, sourced)); err != nil {
		return g.unusable(err)
	}
	return nil
}

// checkGuard returns an error if the guard was edited.
func (g Guard) checkGuard() error {
	f, err := read(g.guard())
	if err != nil {
		return g.unusable(err)
	}
	if _, intact, _ := bodyOf(f.text, guardMark); f.there && !intact {
		return fault.Newf(fault.Conflict, CodeChanged, "%s was changed by hand since cairn wrote it", g.guard()).
			WithHint("move that file away, then run the command again")
	}
	return nil
}

// names returns the possible names of the original hook.
func (g Guard) names() []string {
	return []string{g.Hook + ".orig", g.Hook + ".cairn-orig", g.Hook + ".cairn-orig-2", g.Hook + ".cairn-orig-3"}
}

// keep gives the original hook a second name, under which the chain runs it, and returns
// that name.
func (g Guard) keep(was file) (string, error) {
	names := g.names()
	if bytes.Contains(was.text, []byte(".orig")) { // the hook itself uses that name
		names = names[1:]
	}
	for _, name := range names {
		path := filepath.Join(g.Dir, name)
		err := was.copyTo(path)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", g.unusable(err)
		}
		kept, err := read(path)
		if err != nil {
			return "", g.unusable(err)
		}
		if kept.same(was) {
			return name, nil
		}
	}
	return "", fault.Newf(fault.Conflict, CodeInUse, "%s cannot be kept: %s and the like exist already", g.Path(), names[0]).
		WithHint("move those files away, then run the command again")
}

// Uninstall removes the guard and restores the original hook unchanged. A chain that was edited,
// or that also runs other programs, stays without the guard. removed is false if there was no
// guard. kept lists the files that stay and the reasons, one line each.
//
// It returns the errors of Install.
func (g Guard) Uninstall() (removed bool, kept []string, err error) {
	if err := g.checkGuard(); err != nil {
		return false, nil, err
	}
	was, err := read(g.Path())
	if err != nil {
		return false, nil, g.unusable(err)
	}
	others := g.others()
	body, intact, ours := bodyOf(was.text, chainMark)
	switch {
	case !ours:
		if err := g.dropCopy(was); err != nil {
			return false, nil, g.unusable(err)
		}
	case !intact:
		kept = append(kept, g.Path()+" stays: it was changed by hand since cairn wrote it")
	case len(others) > 0:
		kept = append(kept, g.Path()+" stays: it runs "+strings.Join(others, ", ")+" of "+g.programs())
	default:
		removed = true
		if err := g.restore(origOf(body)); err != nil {
			return false, nil, g.unusable(err)
		}
	}
	err = os.Remove(g.guard())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return removed, kept, g.unusable(err)
	}
	removed = removed || err == nil
	for _, dir := range [...]string{g.programs(), filepath.Dir(g.programs())} {
		_ = os.Remove(dir) // fails if other files are there
	}
	return removed, kept, nil
}

// dropCopy removes a stale copy of the original hook. It is left by an interrupted installation,
// or when the original was put back over the chain.
func (g Guard) dropCopy(was file) error {
	if guard, err := read(g.guard()); err != nil || !guard.there {
		return err
	}
	for _, name := range g.names() {
		copied, err := read(filepath.Join(g.Dir, name))
		if err == nil && copied.same(was) {
			err = os.Remove(copied.path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// restore restores the original hook.
func (g Guard) restore(orig string) error {
	if orig == "" {
		return os.Remove(g.Path())
	}
	err := os.Rename(filepath.Join(g.Dir, orig), g.Path())
	if errors.Is(err, fs.ErrNotExist) { // it was removed
		return os.Remove(g.Path())
	}
	return err
}

// others returns the programs next to the guard.
func (g Guard) others() []string {
	entries, err := os.ReadDir(g.programs())
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.Name() != guardName && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}

func (g Guard) unusable(err error) error {
	return fault.Wrap(err, fault.Unavailable, CodeFolder, "the hooks in "+g.Dir+" cannot be changed: "+reason(err)).
		WithHint("make the hooks folder writable; `git rev-parse --git-path hooks` prints its path")
}

// reason returns a file error's text without the path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// State is the state of a hook.
type State string

// The states.
const (
	None     State = "none"     // no hook
	Foreign  State = "foreign"  // a hook without the guard
	Guarded  State = "guarded"  // the hook runs the guard
	Changed  State = "changed"  // the chain was edited; it may or may not run the guard
	Replaced State = "replaced" // the guard exists, but the hook was replaced and does not run it
	Broken   State = "broken"   // the chain exists, but the guard is missing
)

// HookStatus is the result of Guard.Inspect.
type HookStatus struct {
	Hook   string   `json:"hook"`
	Path   string   `json:"path"` // the file that git runs
	State  State    `json:"state"`
	Kept   string   `json:"kept,omitempty"`   // the original hook, which runs last
	Others []string `json:"others,omitempty"` // other programs that the chain runs

	Program string `json:"program,omitempty"` // the program that the guard calls; "" if there is no guard or it was edited
	Edited  bool   `json:"edited,omitempty"`  // the guard was edited
}

// Inspect returns the state of the hook. It changes nothing. The error is CodeFolder
// (Unavailable) if a file cannot be read.
func (g Guard) Inspect() (HookStatus, error) {
	l := HookStatus{Hook: g.Hook, Path: g.Path(), State: None}
	hook, err := read(g.Path())
	if err != nil {
		return l, g.unusable(err)
	}
	guard, err := read(g.guard())
	if err != nil {
		return l, g.unusable(err)
	}
	body, intact, ours := bodyOf(hook.text, chainMark)
	if ours {
		l.Others = g.others()
		if name := origOf(body); name != "" {
			l.Kept = filepath.Join(g.Dir, name)
		}
	}
	if body, intact, _ := bodyOf(guard.text, guardMark); guard.there {
		l.Edited = !intact
		if intact {
			l.Program = programOf(body)
		}
	}
	switch {
	case ours && !guard.there:
		l.State = Broken
	case ours && !intact:
		l.State = Changed
	case ours:
		l.State = Guarded
	case guard.there:
		l.State = Replaced
	case hook.there:
		l.State = Foreign
	}
	return l, nil
}

// Hooks returns the hooks that can be guarded.
func Hooks() []string { return []string{PreCommit, PrePush} }
