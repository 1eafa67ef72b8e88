package project

import (
	"context"
	"database/sql"
	"encoding/json"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Codes of the errors of Link and Split.
const (
	CodeNoCheckout = "not_a_checkout"   // the place is not in a repository
	CodeAlone      = "already_separate" // the checkout is the only one of its project
)

// kindCheckout is the kind of changes that record a person's decision about a checkout.
// Their op is link or split.
const kindCheckout = "checkout"

const (
	selectCheckoutSessions = `SELECT key, checkout FROM sessions WHERE project_id = ? AND checkout IS NOT NULL ORDER BY key`
	selectMergedAway       = `SELECT ` + projectColumns + ` FROM projects r JOIN project_aliases a ON a.alias = r.id WHERE r.root = ? AND a.project_id = ?`
	deleteAlias            = `DELETE FROM project_aliases WHERE alias = ?`
	// Its records are in the other project now, with their stream.
	renewStream = `UPDATE projects SET records_stream = 'records/' || ?2 || '-' || ?3
WHERE key = ?1 AND EXISTS (SELECT 1 FROM projects o WHERE o.records_stream = 'records/' || ?2)`
	moveSessionsByKey = `UPDATE sessions SET project_id = ? WHERE project_id = ? AND key IN (SELECT value FROM json_each(?))`
)

// Decision is the result of Link or Split.
type Decision struct {
	Checkout Checkout `json:"checkout"`
	From     string   `json:"from"`     // the id of the project that it was in
	Project  string   `json:"project"`  // the id of the project that it is in now
	Sessions int      `json:"sessions"` // number of sessions that moved with it
	Whole    bool     `json:"whole"`    // all of From moved; From is an alias now
}

// SessionsAt lists the sessions of the place's project that began in the place's
// checkout, in any of its worktrees. It omits sessions from before cairn recorded the
// checkout.
func SessionsAt(ctx context.Context, tx *store.Tx, p Location) (keys []int64, err error) {
	q, ok, err := Current(ctx, tx, p)
	if err != nil || !ok {
		return nil, err
	}
	here := map[string]bool{}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var key int64
		var root string
		if err := r.Scan(&key, &root); err != nil {
			return err
		}
		is, known := here[root]
		if !known {
			at, lerr := Locate(root, p.Home)
			is = lerr == nil && at.Identity == p.Identity
			here[root] = is
		}
		if is {
			keys = append(keys, key)
		}
		return nil
	}, selectCheckoutSessions, q.ID)
	return keys, err
}

// Link moves the checkout of a place into another project, with the given sessions, whose
// rows move with the function move. If the checkout is the only content of its project,
// merge moves the whole project (see Merge), and the project becomes an alias. merge may
// be nil to move only the checkout. Link is idempotent and logged.
//
// Errors: Invalid with CodeNoCheckout outside a repository, NotFound for an unknown
// project, and those of move and merge. After an error the transaction must not be
// committed.
func Link(ctx context.Context, tx *store.Tx, p Location, into string, sessions []int64, move MoveSessions, merge MoveProject) (d Decision, err error) {
	c, from, err := resolveCheckout(ctx, tx, p)
	if err != nil {
		return d, err
	}
	to, err := mustFind(ctx, tx, into)
	if err != nil {
		return d, err
	}
	d = Decision{From: from.ID, Project: to.ID}
	if from.Key == to.Key {
		d.Checkout = c
		return d, nil
	}
	others, err := CheckoutsOf(ctx, tx, from.Key)
	if err != nil {
		return d, err
	}
	if len(others) == 1 && merge != nil {
		d.Whole = true
		if err := Merge(ctx, tx, from.ID, to.ID, merge); err != nil {
			return d, err
		}
	}
	owned, ok, err := owner(ctx, tx, c.Remote)
	if err != nil {
		return d, err
	}
	c.Pinned = !ok || owned.Key != to.Key
	err = d.place(ctx, tx, c, from, to, sessions, move)
	if err == nil {
		err = d.log(ctx, tx, "link")
	}
	return d, err
}

// MoveSessions moves the rows of other parts that belong to some sessions from one
// project to another.
type MoveSessions func(ctx context.Context, tx *store.Tx, from, into Project, sessions []int64) error

// MoveProject moves the rows of other parts from one project to another.
type MoveProject func(ctx context.Context, tx *store.Tx, from, into Project) error

// Split moves the checkout of a place into a new project, with the given sessions. The
// key of its remote moves too if no other checkout of the project has that remote; else
// the checkout is pinned. id is the id of the new project, "" for one from the place's
// name. If the checkout is the only one of its project but its remote belongs to another
// project, it stays, and the question counts as decided. Split is logged.
//
// Errors: Invalid with CodeNoCheckout; Conflict with CodeAlone, and with CodeExists for
// an id that is taken; those of move.
func Split(ctx context.Context, tx *store.Tx, p Location, id string, sessions []int64, move MoveSessions) (d Decision, err error) {
	c, from, err := resolveCheckout(ctx, tx, p)
	if err != nil {
		return d, err
	}
	d.From = from.ID
	all, err := CheckoutsOf(ctx, tx, from.Key)
	if err != nil {
		return d, err
	}
	if len(all) == 1 {
		if c.Undecided == "" {
			return d, fault.Newf(fault.Conflict, CodeAlone, "%s is the only checkout of the project %s", c.Root, from.ID).
				WithHint("`cairn project show " + from.ID + "` lists the checkouts of a project")
		}
		c.Pinned = true
		d.Project = from.ID
		err = d.place(ctx, tx, c, from, from, nil, nil)
	} else {
		err = d.splitOff(ctx, tx, p, id, c, from, all, sessions, move)
	}
	if err == nil {
		err = d.log(ctx, tx, "split")
	}
	return d, err
}

func (d *Decision) splitOff(ctx context.Context, tx *store.Tx, p Location, id string, c Checkout, from Project, all []Checkout, sessions []int64, move MoveSessions) error {
	shared := c.Remote == ""
	for _, other := range all {
		shared = shared || other.Identity != c.Identity && other.Remote == c.Remote
	}
	has, owned, err := owner(ctx, tx, c.Remote)
	if err != nil {
		return err
	}
	c.Pinned = shared || !owned || has.Key != from.Key
	var keys []string
	if c.Pinned {
		keys = []string{splitKind + store.NewID()}
	}
	if from.Identity == c.Identity { // another checkout represents the project now
		if err := leaveFirst(ctx, tx, c, from, all); err != nil {
			return err
		}
	}
	to, err := newlySplit(ctx, tx, p, id, c, from, keys)
	if err != nil {
		return err
	}
	if !c.Pinned {
		if _, err := tx.Exec(ctx, moveKey, to.Key, c.Remote); err != nil {
			return err
		}
		if err := setUID(ctx, tx, to.Key); err != nil {
			return err
		}
		if err := setUID(ctx, tx, from.Key); err != nil {
			return err
		}
	}
	d.Project = to.ID
	return d.place(ctx, tx, c, from, to, sessions, move)
}

// newlySplit creates the project of a checkout that is split off. If the checkout had a
// project that was merged, that project is restored with its id.
func newlySplit(ctx context.Context, tx *store.Tx, p Location, id string, c Checkout, from Project, keys []string) (to Project, err error) {
	err = tx.Get(ctx, scanProject(&to), selectMergedAway, c.Root, from.ID)
	switch {
	case err == nil && (id == "" || id == to.ID):
		if _, err := tx.Exec(ctx, deleteAlias, to.ID); err != nil {
			return to, err
		}
		if _, err := tx.Exec(ctx, renewStream, to.Key, to.ID, store.NewID()); err != nil {
			return to, err
		}
		return to, addKeys(ctx, tx, to.Key, keys)
	case ignoreNone(err) != nil:
		return to, err
	}
	if id == "" {
		if id, err = freeID(ctx, tx, p); err != nil {
			return to, err
		}
	} else if _, taken, err := Find(ctx, tx, id); err != nil || taken || isReserved(id) {
		return to, firstError(err, fault.Newf(fault.Conflict, CodeExists, "there is a project %q already", id).WithHint("choose another id"))
	}
	return insert(ctx, tx, Project{ID: id, Name: p.Name, Identity: c.Identity, Root: c.Root, OriginURL: p.OriginURL}, keys...)
}

// leaveFirst makes another checkout the first of a project.
func leaveFirst(ctx context.Context, tx *store.Tx, c Checkout, from Project, all []Checkout) error {
	for _, other := range all {
		if other.Identity != c.Identity {
			from.Identity, from.Root = other.Identity, other.Root
			return from.setPlace(ctx, tx)
		}
	}
	return nil
}

// place stores a checkout in a project, with its sessions.
func (d *Decision) place(ctx context.Context, tx *store.Tx, c Checkout, from, to Project, sessions []int64, move MoveSessions) error {
	c.project, c.Undecided = to.Key, ""
	d.Checkout = c
	if err := c.put(ctx, tx); err != nil {
		return err
	}
	if len(sessions) > 0 && !d.Whole {
		list, err := json.Marshal(sessions)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, moveSessionsByKey, to.ID, from.ID, string(list)); err != nil {
			return err
		}
		if err := move(ctx, tx, from, to, sessions); err != nil {
			return err
		}
	}
	d.Sessions = len(sessions)
	for _, q := range [...]Project{from, to} {
		if _, err := logProject(ctx, tx, q.Key); err != nil {
			return err
		}
	}
	return nil
}

// log appends the decision to the change log.
func (d *Decision) log(ctx context.Context, tx *store.Tx, op string) error {
	doc, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = tx.Append(ctx, store.Change{
		Project: d.Project, Stream: "project/" + d.Project, Kind: kindCheckout, ID: d.Checkout.Identity, Op: op, Doc: doc,
	})
	return err
}

// resolveCheckout returns the present checkout of a place and its project.
func resolveCheckout(ctx context.Context, tx *store.Tx, p Location) (Checkout, Project, error) {
	if p.Identity == "" || p.Gone {
		return Checkout{}, Project{}, fault.Newf(fault.Invalid, CodeNoCheckout, "%s is not in a repository", p.Cwd).
			WithHint("name the folder of a clone; `cairn project merge` joins projects without a repository")
	}
	if _, err := Resolve(ctx, tx, p); err != nil {
		return Checkout{}, Project{}, err
	}
	c, q, _, err := checkoutAt(ctx, tx, p.Identity)
	if p.Remote != "" {
		c.Remote = p.Remote
	}
	return c, q, err
}

func firstError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
