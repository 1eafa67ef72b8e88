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

// Codes of the errors that this package makes.
const (
	CodeFolder  = "hooks_folder"  // the folder of hooks cannot be used
	CodeChanged = "hook_changed"  // a file of ours was changed by somebody else
	CodeInUse   = "hook_occupied" // the names under which a hook may be kept are taken
)

// guardName is the file of the guard in hooks.d/HOOK.
const guardName = "50-cairn"

// Guard is a guard at one hook.
type Guard struct {
	Dir     string   // the folder of hooks, absolute
	Hook    string   // PreCommit or PrePush
	Program string   // of cairn, absolute
	Project string   // whose reservations are asked for; "" for the repository's own
	Staged  []string // with which git prints what is staged; only for PreCommit
}

// Path is the file that git runs.
func (g Guard) Path() string { return filepath.Join(g.Dir, g.Hook) }

func (g Guard) programs() string { return filepath.Join(g.Dir, "hooks.d", g.Hook) }
func (g Guard) guard() string    { return filepath.Join(g.programs(), guardName) }

// Install puts the guard in place. Doing it again changes nothing, unless the
// program or the project is another one. What stood at the hook is kept and run
// last. At any instant there is a whole hook, so an installation that was killed
// can be repeated.
//
// Errors: CodeFolder (Unavailable) where nothing can be written, CodeChanged
// (Conflict) if the guard's own script was changed, CodeInUse (Conflict) if there
// is not a name left under which to keep a hook.
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
			return nil // changed by hand: it is theirs now
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

// putChain writes the chain over the hook.
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

// checkGuard refuses to write over a guard that somebody changed.
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

// names are those under which a hook may be kept.
func (g Guard) names() []string {
	return []string{g.Hook + ".orig", g.Hook + ".cairn-orig", g.Hook + ".cairn-orig-2", g.Hook + ".cairn-orig-3"}
}

// keep gives the hook a second name, under which the chain runs it, and returns
// that.
func (g Guard) keep(was file) (string, error) {
	names := g.names()
	if bytes.Contains(was.text, []byte(".orig")) { // it keeps one of its own there
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

// Uninstall takes the guard away and puts the file back that stood at the hook, as
// it was. A chain that somebody changed, or that runs the programs of others too,
// stays as it is, without the guard. removed is false if there was no guard; kept
// says what stays and why, a line each.
//
// Errors: those of Install.
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
		_ = os.Remove(dir) // unless somebody else has files there
	}
	return removed, kept, nil
}

// dropCopy removes the second name of a hook that an installation has left which
// was killed, or whose chain somebody has replaced by what stood there before.
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

// restore puts the file back that stood at the hook.
func (g Guard) restore(orig string) error {
	if orig == "" {
		return os.Remove(g.Path())
	}
	err := os.Rename(filepath.Join(g.Dir, orig), g.Path())
	if errors.Is(err, fs.ErrNotExist) { // somebody took it away
		return os.Remove(g.Path())
	}
	return err
}

// others are the programs beside the guard.
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
		WithHint("see that the folder of hooks can be written to; `git rev-parse --git-path hooks` names it")
}

// reason is an error of a file without its path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// State says what stands at a hook.
type State string

// The states.
const (
	None     State = "none"     // no hook
	Foreign  State = "foreign"  // a hook, but not the guard
	Guarded  State = "guarded"  // the guard is asked
	Changed  State = "changed"  // somebody changed the chain; whether it still asks the guard is theirs to say
	Replaced State = "replaced" // the guard is there, but the hook was replaced: nobody asks it
	Broken   State = "broken"   // the chain is there, but the guard is not
)

// HookStatus is what Guard.HookStatus finds.
type HookStatus struct {
	Hook   string   `json:"hook"`
	Path   string   `json:"path"` // what git runs
	State  State    `json:"state"`
	Kept   string   `json:"kept,omitempty"`   // the hook that stood there before, and is run last
	Others []string `json:"others,omitempty"` // other programs that the chain runs

	Program string `json:"program,omitempty"` // that the guard calls; "" if there is none, or it was edited
	Edited  bool   `json:"edited,omitempty"`  // somebody changed the guard itself
}

// HookStatus says what stands at the hook. It changes nothing. The error is CodeFolder
// (Unavailable) for files that cannot be read.
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

// Hooks are the hooks that can be guarded.
func Hooks() []string { return []string{PreCommit, PrePush} }
