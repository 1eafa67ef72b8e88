package project

import (
	"context"
	"database/sql"
	"strings"

	"cairn/internal/project/gitdir"
	"cairn/internal/store"
)

// metaRekey is the name of a note in a store from before migration 9, as long as its
// projects have no keys of remotes.
const metaRekey = "projects_rekey"

const (
	selectUnkeyed = `SELECT ` + projectColumns + `, (SELECT count(*) FROM project_keys k WHERE k.project_key = r.key) FROM projects r
WHERE NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id) ORDER BY r.created_at, r.key`
	selectAllCheckouts = `SELECT ` + projectColumns + `, ` + checkoutColumns + ` FROM project_checkouts c
JOIN projects r ON r.key = c.project_key ORDER BY c.identity`
	updateUndecided = `UPDATE project_checkouts SET undecided = ? WHERE project_key = ?`
	selectUndecided = `SELECT ` + projectColumns + `, ` + checkoutColumns + ` FROM project_checkouts c
JOIN projects r ON r.key = c.project_key WHERE c.undecided <> '' ORDER BY c.identity`
)

// NeedsRekey reports whether the store comes from a cairn that identified projects by
// name. Then Plan returns the work for Rekey.
func NeedsRekey(ctx context.Context, tx *store.Tx) (needed bool, err error) {
	_, needed, err = tx.Meta(ctx, metaRekey)
	return needed, err
}

// KeyedProject is a project of an older store with its new key.
type KeyedProject struct {
	ID   string
	Key  string
	Into string // id of the older project with that key, into which it must be merged; "" for none

	row      int64
	checkout *Checkout // present state on disk; nil for a folder
}

// Plan returns the projects without a key, oldest first, each with the key of its remote
// or of its path. It reads the remote from the checkout if that exists, else from the
// stored URL. If several projects have the same key, the first keeps it. It changes
// nothing and reads a few files for each project.
func Plan(ctx context.Context, tx *store.Tx, home string) (plan []KeyedProject, err error) {
	checkouts := map[int64]Checkout{}
	err = eachCheckout(ctx, tx, func(c Checkout, q Project) error {
		checkouts[q.Key] = c
		return nil
	}, selectAllCheckouts)
	if err != nil {
		return nil, err
	}
	owners := map[string]string{}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var q Project
		var keys int
		if err := r.Scan(append(scanProject(&q), &keys)...); err != nil {
			return err
		}
		k := KeyedProject{ID: q.ID, row: q.Key}
		if c, ok := checkouts[q.Key]; ok {
			k.Key, k.checkout = refreshed(c, q, home)
		}
		if first, taken := owners[k.Key]; taken && k.Key != "" {
			k.Into = first
		} else if k.Key != "" {
			owners[k.Key] = q.ID
		}
		plan = append(plan, k)
		return nil
	}, selectUnkeyed)
	return plan, err
}

// refreshed returns the key of a stored checkout, and the checkout as it is now.
func refreshed(c Checkout, q Project, home string) (string, *Checkout) {
	place, err := Locate(c.Root, home)
	if err == nil && c.Root != "" && place.Identity == c.Identity {
		c.Remote, c.birth = place.Remote, birthOf(c.Identity)
		return place.key(), &c
	}
	if c.Remote = NormalizeRemote(q.OriginURL, c.Root); c.Remote != "" {
		return c.Remote, &c
	}
	return repositoryKey(c.Identity), &c
}

// Rekey gives a project of a plan its key and its uid. It ignores a project with Into;
// the caller must merge it or call Undecide. It is idempotent.
func Rekey(ctx context.Context, tx *store.Tx, k KeyedProject) error {
	if k.Into != "" {
		return nil
	}
	if k.checkout != nil {
		if err := k.checkout.put(ctx, tx); err != nil {
			return err
		}
	}
	_, taken, err := owner(ctx, tx, k.Key)
	switch {
	case err != nil:
		return err
	case taken || k.Key == "":
		err = setUID(ctx, tx, k.row)
	default:
		err = addKey(ctx, tx, k.row, k.Key)
	}
	if err != nil {
		return err
	}
	_, err = logProject(ctx, tx, k.row)
	return err
}

// Undecide marks the checkouts of a project whose remote belongs to another project, so
// that a person can decide.
func Undecide(ctx context.Context, tx *store.Tx, k KeyedProject) error {
	if _, err := tx.Exec(ctx, updateUndecided, k.Key, k.row); err != nil {
		return err
	}
	return setUID(ctx, tx, k.row)
}

// Rekeyed ends the migration of a store. Afterwards NeedsRekey returns false.
func Rekeyed(ctx context.Context, tx *store.Tx) error {
	return tx.DeleteMeta(ctx, metaRekey)
}

// UndecidedCheckout is a checkout whose remote belongs to another project.
type UndecidedCheckout struct {
	Checkout
	Project string // its own
	Other   string // project with the remote's key
}

// Undecided returns the checkouts that a person must decide about.
func Undecided(ctx context.Context, tx *store.Tx) (list []UndecidedCheckout, err error) {
	err = eachCheckout(ctx, tx, func(c Checkout, q Project) error {
		other, ok, err := owner(ctx, tx, c.Undecided)
		if ok && other.Key != q.Key {
			list = append(list, UndecidedCheckout{c, q.ID, other.ID})
		}
		return err
	}, selectUndecided)
	return list, err
}

// WithoutRoot returns the checkouts whose project is identified only by a path, and which
// may be copies of one history. They have neither a remote nor a root commit, and no
// person assigned them. Shallow and missing checkouts are omitted.
func WithoutRoot(ctx context.Context, tx *store.Tx) (list []Checkout, err error) {
	err = eachCheckout(ctx, tx, func(c Checkout, q Project) error {
		if c.Remote != "" || c.Undecided != "" || c.Pinned || c.Root == "" || gitdir.PathIsGone(c.Identity) || !gitdir.PathIsGone(c.Identity+"/shallow") {
			return nil
		}
		keys, err := tx.Texts(ctx, selectKeys, q.Key)
		for _, key := range keys {
			if strength(key) >= rootStrength {
				return err
			}
		}
		list = append(list, c)
		return err
	}, selectAllCheckouts)
	return list, err
}

// SetRoot adds the key of the root commit to the project of a checkout. If another
// project has the key, it returns that project's id: two copies of one history are one
// project, and the caller must merge them.
func SetRoot(ctx context.Context, tx *store.Tx, identity, commit string) (from, into string, err error) {
	_, q, ok, err := checkoutAt(ctx, tx, identity)
	if err != nil || !ok {
		return "", "", err
	}
	key := rootKind + strings.ToLower(commit)
	other, taken, err := owner(ctx, tx, key)
	switch {
	case err != nil || taken && other.Key == q.Key:
		return "", "", err
	case taken:
		return q.ID, other.ID, nil
	}
	if err := addKey(ctx, tx, q.Key, key); err != nil {
		return "", "", err
	}
	_, err = logProject(ctx, tx, q.Key)
	return "", "", err
}

const updateUndecidedAt = `UPDATE project_checkouts SET undecided = ? WHERE identity = ?`

// UndecideRoot marks a checkout as a copy of the history of another project that could
// not be merged.
func UndecideRoot(ctx context.Context, tx *store.Tx, identity, commit string) error {
	_, err := tx.Exec(ctx, updateUndecidedAt, rootKind+strings.ToLower(commit), identity)
	return err
}
