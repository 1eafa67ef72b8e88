package project

import (
	"context"
	"database/sql"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// Summary is a project as lists show it.
type Summary struct {
	Project
	Aliases   []string `json:"aliases"`    // in order, never nil; includes the ids merged into it
	CreatedAt int64    `json:"created_at"` // Unix seconds
	Sessions  int64    `json:"sessions"`   // number of sessions whose own project it is
	LastSeen  int64    `json:"last_seen"`  // of these sessions, Unix seconds; 0 without one

	Keys      []string   `json:"keys"`      // in the order in which they became known, never nil
	Checkouts []Checkout `json:"checkouts"` // in the order of their git directories, never nil
}

// List returns every project, most recently seen first. Merged projects appear as
// aliases. It reads the whole table.
func List(ctx context.Context, tx *store.Tx) ([]Summary, error) {
	list := []Summary{}
	at := map[string]int{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		s := Summary{Aliases: []string{}, Keys: []string{}, Checkouts: []Checkout{}}
		err := r.Scan(append(scanProject(&s.Project), &s.CreatedAt, &s.Sessions, &s.LastSeen)...)
		at[s.ID] = len(list)
		list = append(list, s)
		return err
	}, selectProjects)
	if err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var alias, id string
		err := r.Scan(&alias, &id)
		if i, ok := at[id]; ok {
			list[i].Aliases = append(list[i].Aliases, alias)
		}
		return err
	}, selectAllAliases)
	if err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var key, id string
		err := r.Scan(&key, &id)
		if i, ok := at[id]; ok {
			list[i].Keys = append(list[i].Keys, key)
		}
		return err
	}, selectAllKeys)
	if err != nil {
		return nil, err
	}
	err = eachCheckout(ctx, tx, func(c Checkout, q Project) error {
		if i, ok := at[q.ID]; ok {
			list[i].Checkouts = append(list[i].Checkouts, c)
		}
		return nil
	}, selectAllCheckouts)
	return list, err
}

// AddAlias makes alias another name of the project that id names, itself an id or an
// alias; an alias that exists is pointed there (observations §2). New repositories and
// folders can no longer get alias as their id. It is idempotent.
//
// Errors: NotFound for an unknown id; Conflict if the alias is a project's own id.
// Invalid for an alias that is blank, longer than 200 bytes, "*" or contains control
// characters.
func AddAlias(ctx context.Context, tx *store.Tx, alias, id string) error {
	if err := checkAlias(alias); err != nil {
		return err
	}
	q, err := mustFind(ctx, tx, id)
	if err != nil {
		return err
	}
	var isProject bool
	if err := tx.Get(ctx, []any{&isProject}, selectIsProject, alias); err != nil {
		return err
	}
	old, taken, err := Find(ctx, tx, alias)
	switch {
	case err != nil:
		return err
	case taken && old.Key == q.Key && alias != q.ID:
		return nil
	case isProject:
		return fault.Newf(fault.Conflict, CodeTaken, "%q is the id of a project", alias).
			WithHint("`cairn project merge` moves one project into another")
	case taken:
		_, err = tx.Exec(ctx, updateAlias, q.ID, alias)
	default:
		_, err = tx.Exec(ctx, insertAlias, alias, q.ID)
	}
	if err == nil && taken {
		_, err = logProject(ctx, tx, old.Key)
	}
	if err != nil {
		return err
	}
	_, err = logProject(ctx, tx, q.Key)
	return err
}

func checkAlias(alias string) error {
	if strings.TrimSpace(alias) == "" || len(alias) > maxAlias || alias == "*" || !utf8.ValidString(alias) ||
		strings.ContainsFunc(alias, unicode.IsControl) {
		return fault.New(fault.Invalid, "invalid_argument", "an alias must be one line of 1 to 200 bytes, and not *")
	}
	return nil
}

// Merge moves all data of the project from into the project into: sessions, keys and
// checkouts. The function move, which may be nil, moves the rows of other parts.
// Afterwards from's id and aliases mean into; from's row stays. Both names may be
// aliases. Merge is idempotent. The change of kind project with merged_into covers the
// moved sessions too, which are not logged one by one.
//
// Errors: NotFound for an unknown name, Invalid if both are the same project, and those
// of move. After an error the transaction must not be committed.
func Merge(ctx context.Context, tx *store.Tx, from, into string, move func(ctx context.Context, tx *store.Tx, from, into Project) error) error {
	f, err := mustFind(ctx, tx, from)
	if err != nil {
		return err
	}
	t, err := mustFind(ctx, tx, into)
	switch {
	case err != nil:
		return err
	case f.Key == t.Key && from == f.ID:
		return fault.New(fault.Invalid, "invalid_argument", "a project cannot be merged into itself")
	case f.Key == t.Key:
		return nil
	}
	if move != nil {
		if err := move(ctx, tx, f, t); err != nil {
			return err
		}
	}
	for _, s := range [...]struct {
		statement string
		a, b      any
	}{
		{moveSessions, t.ID, f.ID},
		{redirectAliases, t.ID, f.ID},
		{insertAlias, f.ID, t.ID},
		{moveCheckouts, t.Key, f.Key},
		{moveKeys, t.Key, f.Key},
	} {
		if _, err := tx.Exec(ctx, s.statement, s.a, s.b); err != nil {
			return err
		}
	}
	if err := setUID(ctx, tx, t.Key); err != nil {
		return err
	}
	if _, err := logProject(ctx, tx, f.Key); err != nil {
		return err
	}
	_, err = logProject(ctx, tx, t.Key)
	return err
}

func mustFind(ctx context.Context, tx *store.Tx, name string) (Project, error) {
	q, ok, err := Find(ctx, tx, name)
	if err == nil && !ok {
		err = NotFound(name)
	}
	return q, err
}

// NotFound returns the error (NotFound, CodeNotFound) for a name without a project.
func NotFound(name string) error {
	return fault.Newf(fault.NotFound, CodeNotFound, "no project is called %q", name).
		WithHint("`cairn project list` shows them")
}

func aliasesOf(ctx context.Context, tx *store.Tx, id string) ([]string, error) {
	list := []string{}
	err := tx.Each(ctx, func(r *sql.Rows) error {
		var alias string
		err := r.Scan(&alias)
		list = append(list, alias)
		return err
	}, selectAliases, id)
	return list, err
}
