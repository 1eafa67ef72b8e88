package origin

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/shell"
	"cairn/internal/store"
)

// CommitTime contains the data of a commit in git. Times are Unix seconds.
type CommitTime struct {
	Hash, Subject       string
	Authored, Committed int64
}

// Limits, in seconds, for the time between a commit and the report of the command that created
// it.
const (
	commitBefore = 1   // clocks have a resolution of one second
	commitAfter  = 5   // if the duration of the command is known; the duration is added
	commitLate   = 120 // if the duration is unknown
)

// CommitMaker returns the row that created a commit whose hash no row has. The hash is missing
// if git printed none (git commit -q), or if the commit was rewritten later. The row must be a
// commit of cwd's project at the commit's time, with its subject. A command without a subject
// counts if it is the only one at that time, or if its session pushed the commit later. ok is
// false if there is no such row.
func CommitMaker(ctx context.Context, svc *observation.Service, cwd string, c CommitTime) (made Origin, ok bool, err error) {
	place, err := project.Locate(cwd, svc.Config.Home)
	if err != nil {
		return made, false, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		own, known, err := project.Current(ctx, tx, place)
		if err != nil || !known {
			return err
		}
		near, err := commitsNear(ctx, tx, own.ID, c)
		if err != nil || len(near) == 0 {
			return err
		}
		pusher := ""
		if err := tx.Each(ctx, func(r *sql.Rows) error {
			_, o, err := scanOrigin(r)
			pusher = o.SessionID
			return err
		}, selectPushes, own.ID, c.Hash, c.Committed-commitBefore); err != nil {
			return err
		}
		made, ok = chooseCommit(near, pusher)
		return nil
	})
	return made, ok, err
}

// nearCommit is a row that may have created a commit.
type nearCommit struct {
	Origin
	subject bool // the row contains the commit's subject
}

// commitsNear returns the rows that may have created c, by their time. It uses the author time,
// and the commit time only if no row is near the author time.
func commitsNear(ctx context.Context, tx *store.Tx, project string, c CommitTime) (near []nearCommit, err error) {
	for _, at := range []int64{c.Authored, c.Committed} {
		err := tx.Each(ctx, func(r *sql.Rows) error {
			var hash, message, content sql.NullString
			var duration sql.NullInt64
			_, o, err := scanOrigin(r, &hash, &message, &content, &duration)
			if err != nil {
				return err
			}
			late := int64(commitLate)
			if duration.Valid {
				late = commitAfter + duration.Int64/1000
			}
			n := nearCommit{o, c.Subject != "" && strings.Contains(content.String, c.Subject)}
			switch {
			case o.Timestamp > at+late || !commits(content.String):
			case hash.Valid && message.String == c.Subject: // rewritten later
				n.subject = true
				near = append(near, n)
			case !hash.Valid && (n.subject || at == c.Committed && !namesSubject(content.String)):
				near = append(near, n)
			}
			return nil
		}, selectCommitsNear, project, at-commitBefore, at+maxCommitTime)
		if err != nil || len(near) > 0 {
			return near, err
		}
	}
	return nil, nil
}

// maxCommitTime is the maximum duration of a command that commits, in seconds.
const maxCommitTime = 3600

// commits reports whether a command line runs git commit.
func commits(command string) bool { return shell.Read(command, "Bash").Commit }

// namesSubject reports whether a command line contains the message of a commit.
func namesSubject(command string) bool {
	return strings.Contains(command, " -m") || strings.Contains(command, "--message") || strings.Contains(command, "am ")
}

// chooseCommit returns the row that created the commit. If rows contain the subject, it
// considers only those. It returns the row of the session that pushed the commit, else the
// first row. The result is false if the first row is used and the rows are from several
// sessions.
func chooseCommit(near []nearCommit, pusher string) (Origin, bool) {
	named := slices.DeleteFunc(slices.Clone(near), func(n nearCommit) bool { return !n.subject })
	if len(named) > 0 {
		near = named
	}
	for _, n := range near {
		if n.SessionID == pusher {
			return n.Origin, true
		}
	}
	other := func(n nearCommit) bool { return n.SessionID != near[0].SessionID }
	return near[0].Origin, !slices.ContainsFunc(near, other)
}
