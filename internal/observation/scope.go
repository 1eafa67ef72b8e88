package observation

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/words"
)

// Scope selects the project of a query.
type Scope struct {
	Project string // id or alias; "" means all projects
}

// ScopeKey returns the key of a scope's project, 0 for all projects. ok is false if the project
// is unknown or has no rows.
func ScopeKey(ctx context.Context, tx *store.Tx, s Scope) (key int64, ok bool, err error) {
	if s.Project == "" {
		return 0, true, nil
	}
	p, ok, err := project.Find(ctx, tx, s.Project)
	if err != nil || !ok {
		return 0, false, err
	}
	err = tx.Get(ctx, []any{&ok}, selectHasRows, p.Key)
	return p.Key, ok, err
}

const (
	selectHasRows = `SELECT EXISTS (SELECT 1 FROM observation_rows WHERE project_key = ?)`
)

// LookUp returns the id that a query finds, 0 if it finds none.
func LookUp(ctx context.Context, tx *store.Tx, query string, args ...any) (id int64, err error) {
	err = tx.Get(ctx, []any{&id}, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

func NullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// ProjectID returns the id of the project with this id or alias, "" for "". An unknown project
// is a NotFound error.
func ProjectID(ctx context.Context, tx *store.Tx, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	p, ok, err := project.Find(ctx, tx, name)
	if err == nil && !ok {
		err = project.NotFound(name)
	}
	return p.ID, err
}

// EachNumbered runs a query that returns one text with entries separated by NUL. It calls fn
// with each entry: its leading numbers and the text after them.
func EachNumbered[N [1]int64 | [2]int64](ctx context.Context, tx *store.Tx, fn func(N, string) error, query string, args ...any) error {
	var list string
	if err := tx.Get(ctx, []any{&list}, query, args...); err != nil || list == "" {
		return err
	}
	for rest := range strings.SplitSeq(list, "\x00") {
		var numbers N
		for i := range len(numbers) {
			digits, after, _ := strings.Cut(rest, " ")
			n, err := strconv.ParseInt(digits, 10, 64)
			if err != nil {
				return err
			}
			numbers[i], rest = n, after
		}
		if err := fn(numbers, rest); err != nil {
			return err
		}
	}
	return nil
}

// IdList returns ids as a JSON array.
func IdList(ids []int64) (string, error) {
	list, err := json.Marshal(ids)
	return string(list), err
}

func NoProject(name string) error {
	return fault.Newf(fault.NotFound, "not_found", "no project is called %q", name).
		WithHint("`cairn project list` shows them")
}

func SessionNotFound(id string) error {
	return fault.New(fault.NotFound, "not_found", "session not found: "+id)
}

// MaxIDs is the maximum number of rows of one call of Get.
const MaxIDs = 50

// ParseQuery parses a search query into a match expression for observations_fts.
func ParseQuery(query string) (match string, err error) {
	return words.Language{Parts: "parts", Wholes: "wholes"}.Parse(query)
}
