package reservations

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/mail"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
	"cairn/internal/store"
)

// HolderActivity shows whether a holder still works on its reserved files (mail §7). A null time
// means no activity, or that it was not checked.
type HolderActivity struct {
	Reasons []string  `json:"stale_reasons"`          // never nil
	Holder  mail.Time `json:"last_agent_activity_ts"` // last call of the agent
	Mail    mail.Time `json:"last_mail_activity_ts"`
	Files   mail.Time `json:"last_filesystem_activity_ts"`
	Git     mail.Time `json:"last_git_activity_ts"`
}

// watched is a reservation whose holder's activity is checked.
type watched struct {
	pattern     pathpattern.Pattern
	worktree    *string // of the holder
	agent, mail mail.Time
	files, git  mail.Time
	filesBusy   bool // active, or unknown
	gitBusy     bool
	unmatched   bool // no file matches the pattern
	ended       bool // released
}

const selectMailActivity = `SELECT max(ifnull((SELECT max(created_ts) FROM mail_messages WHERE sender_id = ?1), 0),
ifnull((SELECT max(max(ifnull(read_ts, 0), ifnull(ack_ts, 0))) FROM mail_recipients WHERE agent_id = ?1), 0))`

// mailActivity returns when an agent last sent, read or acknowledged a message, or 0.
func mailActivity(ctx context.Context, tx *store.Tx, agentID int64) (at mail.Time, err error) {
	return at, tx.Get(ctx, []any{&at}, selectMailActivity, agentID)
}

// silent reports whether the holder itself has been inactive for longer than Config.Inactivity.
func silent(o *mail.Kernel, w *watched, now mail.Time) bool {
	return now-w.agent > mail.Time(o.Config.Inactivity)
}

func recent(o *mail.Kernel, at, now mail.Time) bool {
	return at != 0 && now-at <= mail.Time(o.Config.Grace)
}

// signs reports whether a reservation is stale, and the reasons, from the collected activity.
func signs(o *mail.Kernel, w *watched, now mail.Time) (stale bool, out HolderActivity) {
	out = HolderActivity{Reasons: []string{}, Holder: w.agent, Mail: w.mail, Files: w.files, Git: w.git}
	if w.ended {
		return false, out
	}
	grace := int64(o.Config.Grace / time.Second)
	say := func(busy bool, what string) {
		if busy {
			out.Reasons = append(out.Reasons, what+"_activity_recent")
		} else {
			out.Reasons = append(out.Reasons, fmt.Sprintf("no_recent_%s_activity>%ds", what, grace))
		}
	}
	silent, written := silent(o, w, now), recent(o, w.mail, now)
	if silent {
		out.Reasons = append(out.Reasons, fmt.Sprintf("agent_inactive>%ds", int64(o.Config.Inactivity/time.Second)))
	} else {
		out.Reasons = append(out.Reasons, "agent_recently_active")
	}
	say(written, "mail")
	if w.unmatched {
		out.Reasons = append(out.Reasons, "path_pattern_unmatched")
	} else {
		say(w.filesBusy, "filesystem")
		say(w.gitBusy, "git")
	}
	return silent && !written && !w.filesBusy && !w.gitBusy, out
}

// observe checks the files of reservations of a project for activity. All of them share one
// budget; unchecked files count as active. It must not run inside a transaction.
func observe(ctx context.Context, o *mail.Kernel, c mail.Caller, p *mail.Project, now mail.Time, all []*watched) error {
	all = slices.DeleteFunc(slices.Clone(all), func(w *watched) bool { return w.ended })
	if len(all) == 0 {
		return nil
	}
	places, err := checkouts(ctx, o, c, p)
	if err != nil {
		return err
	}
	since := now - mail.Time(o.Config.Grace)
	// Only reservations with an inactive holder can be stale, so the budget goes to them first.
	slices.SortStableFunc(all, func(a, b *watched) int { return compareBools(silent(o, b, now), silent(o, a, now)) })
	look := newLook(since, p.FoldsCase)
	for _, w := range all {
		look.at(w, roots(p, places, c.Place, w.worktree))
	}
	edits, err := touches(ctx, o.Config.Edits, p.ProductID, since)
	if err != nil {
		return err
	}
	var commits []mail.Touch
	failed := false // the commits are unknown
	for _, place := range places {
		list, err := touches(ctx, o.Config.Commits, mainRoot(place), since)
		commits, failed = append(commits, list...), failed || err != nil
	}
	for _, w := range all {
		if w.unmatched {
			continue
		}
		w.files = max(w.files, newest(edits, w.pattern))
		w.git = newest(commits, w.pattern)
		w.filesBusy = w.filesBusy || w.files >= since
		w.gitBusy = failed || w.git >= since
	}
	return nil
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func touches(ctx context.Context, of func(context.Context, string, time.Time) ([]mail.Touch, error), what string, since mail.Time) ([]mail.Touch, error) {
	if of == nil {
		return nil, nil
	}
	return of(ctx, what, since.UTC())
}

// newest returns the time of the latest change to a file that the pattern covers, or 0.
func newest(all []mail.Touch, p pathpattern.Pattern) (at mail.Time) {
	for _, t := range all {
		if path, err := pathpattern.ParsePath(t.Path); err == nil && mail.TimeOf(t.At) > at && p.Matches(path) {
			at = mail.TimeOf(t.At)
		}
	}
	return at
}

const maxCheckouts = 8 // in which activity is checked

// checkouts returns the locations of a project: its human_key, then other existing checkouts, at
// most maxCheckouts in all.
func checkouts(ctx context.Context, o *mail.Kernel, c mail.Caller, p *mail.Project) ([]project.Location, error) {
	first, err := project.Locate(p.HumanKey, c.Place.Home)
	if err != nil || !p.IsRepository() || p.RowKey == 0 {
		return []project.Location{first}, err
	}
	places := []project.Location{first}
	var list []project.Checkout
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		list, err = project.CheckoutsOf(ctx, tx, p.RowKey)
		return err
	})
	for _, checkout := range list {
		if len(places) == maxCheckouts || checkout.Identity == first.Identity || checkout.Root == "" || mail.PathIsGone(checkout.Identity) {
			continue
		}
		if place, err := project.Locate(checkout.Root, c.Place.Home); err == nil && place.Identity == checkout.Identity {
			places = append(places, place)
		}
	}
	return places, err
}

// mainRoot returns the root of a repository's main worktree. For a directory it returns the
// directory.
func mainRoot(place project.Location) string {
	if place.Identity == "" {
		return place.Canonical()
	}
	return place.Git().Main
}

// roots returns the worktrees that may contain the holder's files: the main worktree of each
// checkout, the caller's and the holder's own.
func roots(p *mail.Project, places []project.Location, caller project.Location, worktree *string) []string {
	all := []string{p.HumanKey}
	add := func(root string) {
		if root != "" && !slices.Contains(all, root) {
			all = append(all, root)
		}
	}
	for _, place := range places {
		if place.Identity == "" || !p.IsRepository() {
			continue
		}
		add(mainRoot(place))
		if caller.Identity == place.Identity {
			add(caller.Root)
		}
		if worktree != nil && filepath.IsLocal(*worktree) && filepath.Base(*worktree) == *worktree {
			admin := filepath.Join(place.Identity, "worktrees", *worktree)
			if file, ok := project.ReadMarker(filepath.Join(admin, "gitdir")); ok {
				if !filepath.IsAbs(file) {
					file = filepath.Join(admin, file)
				}
				add(filepath.Dir(file))
			}
		}
	}
	return all
}
