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

// guards looks at the hooks of the repositories that the store knows and that are
// still there.
func (d *diagnosing) guards(ctx context.Context, s *store.Store) {
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
		d.args.Progress("looking at the hooks of " + p.Root)
		dir, hooks, err := d.subject.Hooks(ctx, p.Root)
		switch {
		case fault.HasCode(err, mail.CodeInvalid), fault.HasCode(err, gitread.CodeFailed): // no repository, or not for git
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
		d.add("guards", OK, fmt.Sprintf("%d hooks ask the guard", guarded), "", "")
	}
}

// guard reports what is wrong with the guard at one hook, and counts it if it is
// asked.
func (d *diagnosing) guard(l githook.HookStatus) (asked int) {
	const why = "commits and pushes go past what others have reserved"
	const again = "run `cairn guard install` in that repository"
	switch l.State {
	case githook.None, githook.Foreign:
		return 0
	case githook.Replaced:
		d.add("guards", Problem, l.Path+" was replaced, and the guard is not asked", why, again)
		return 0
	case githook.Broken:
		d.add("guards", Problem, "the guard of "+l.Path+" is not there any more", why, again)
		return 0
	case githook.Changed:
		d.add("guards", Warning, l.Path+" was changed by hand", "whether it still asks the guard is not known",
			"look at the file; to have it written anew, move it away and "+again)
	case githook.Guarded:
		asked = 1
	}
	if l.Edited {
		d.add("guards", Warning, "the guard of "+l.Path+" was changed by hand", "whether it still asks cairn is not known",
			"look at the files in "+strings.TrimSuffix(l.Path, l.Hook)+"hooks.d; to have it written anew, move it away and "+again)
		return 0
	}
	if _, err := exec.LookPath(l.Program); err != nil {
		if _, other := exec.LookPath("cairn"); other != nil {
			d.add("guards", Problem, fmt.Sprintf("the guard of %s calls %s, which is not there, and no cairn is in the PATH", l.Path, l.Program), why, again)
			return 0
		}
		d.add("guards", Warning, fmt.Sprintf("the guard of %s calls %s, which is not there; it takes the cairn in the PATH of git", l.Path, l.Program),
			"git may be started without that PATH", again)
	}
	return asked
}
