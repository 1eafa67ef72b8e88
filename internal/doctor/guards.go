package doctor

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/githook"
	"cairn/internal/gitread"
	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// guards checks the hooks of all known repositories that still exist.
func (d *doctorRun) guards(ctx context.Context, s *store.Store) {
	var known []project.Summary
	err := s.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		known, err = project.List(ctx, tx)
		return err
	})
	if err != nil {
		d.unknown("guards", err)
		return
	}
	guarded, seen := 0, map[string]bool{}
	for _, p := range known {
		if p.Root == "" || !isThere(p.Root) || ctx.Err() != nil {
			continue
		}
		d.args.Progress("checking the hooks of " + p.Root)
		dir, hooks, err := d.subject.Hooks(ctx, p.Root)
		switch {
		case fault.HasCode(err, mail.CodeInvalid), fault.HasCode(err, gitread.CodeFailed): // not a repository, or git cannot read it
			continue
		case fault.HasCode(err, gitread.CodeNoGit):
			d.unknown("guards", err)
			return
		case err != nil:
			d.unknown("guards", fmt.Errorf("%s: %w", p.Root, err))
			continue
		case seen[dir]:
			continue
		}
		seen[dir] = true
		for _, hook := range hooks {
			guarded += d.guard(hook)
		}
	}
	if guarded > 0 {
		d.add("guards", OK, fmt.Sprintf("%d hooks call the guard", guarded), "", "")
	}
}

// guard reports problems of the guard in one hook, and returns 1 if the hook calls it.
func (d *doctorRun) guard(l githook.HookStatus) (asked int) {
	const why = "commits and pushes are not checked for reserved files"
	const again = "run `cairn guard install` in that repository"
	switch l.State {
	case githook.None, githook.Foreign:
		return 0
	case githook.Replaced:
		d.add("guards", Problem, l.Path+" was replaced and does not call the guard", why, again)
		return 0
	case githook.Broken:
		d.add("guards", Problem, "the guard of "+l.Path+" no longer exists", why, again)
		return 0
	case githook.Changed:
		d.add("guards", Warning, l.Path+" was edited", "it may no longer call the guard",
			"check the file; to restore it, move it away and "+again)
	case githook.Guarded:
		asked = 1
	}
	if l.Edited {
		d.add("guards", Warning, "the guard of "+l.Path+" was edited", "it may no longer call cairn",
			"check the files in "+strings.TrimSuffix(l.Path, l.Hook)+"hooks.d; to restore the guard, move it away and "+again)
		return 0
	}
	if _, err := exec.LookPath(l.Program); err != nil {
		if _, other := exec.LookPath("cairn"); other != nil {
			d.add("guards", Problem, fmt.Sprintf("the guard of %s calls %s, which does not exist, and no cairn is in the PATH", l.Path, l.Program), why, again)
			return 0
		}
		d.add("guards", Warning, fmt.Sprintf("the guard of %s calls %s, which does not exist; it uses the cairn in git's PATH", l.Path, l.Program),
			"git may be started with another PATH", again)
	}
	return asked
}
