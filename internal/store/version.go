package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/sqlitefile"
)

// SchemaNote is the name in store_meta of the number of the store's schema. It repeats
// user_version, so that a flipped bit in the header can be distinguished from a newer
// store.
const SchemaNote = "schema"

// noteSchema stores the number of the schema next to user_version.
const noteSchema = `INSERT OR REPLACE INTO store_meta (name, value) VALUES ('` + SchemaNote + `', ?)`

// unnoted is the newest schema without a note of its number.
const unnoted = 8

// createdBy returns the tables that the n-th migration creates. They identify the schema
// of stores without a note.
func createdBy(n int) (names []string) {
	text, _ := migrations.ReadFile(migrationFiles()[n-1]) // embedded, so it cannot fail
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "CREATE TABLE "); ok {
			name, _, _ := strings.Cut(rest, " ")
			names = append(names, name)
		}
	}
	return names
}

// versionOf returns the number of a store's schema, from its note and its tables, or 0 if
// they are not cairn's.
func versionOf(tables map[string]bool, note string) int {
	own := 0
	for _, name := range []string{"changes", "store_meta", "symbols", "followers", "projects", "sessions"} {
		if tables[name] {
			own++
		}
	}
	if own < 3 {
		return 0
	}
	if n, err := strconv.Atoi(note); err == nil && n > 0 {
		return n
	}
	version := 0
	for n := 1; n <= unnoted; n++ {
		if slices.ContainsFunc(createdBy(n), func(name string) bool { return tables[name] }) {
			version = n
		}
	}
	return version
}

// queryer is a connection or a pool of connections.
type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

const (
	selectTables = `SELECT name FROM sqlite_schema WHERE type = 'table'`
	selectNote   = `SELECT value FROM store_meta WHERE name = '` + SchemaNote + `'`
)

// checkVersion compares the schema number of the header with the note and the tables of
// the store. The number of a usable store is 0 for an empty file, else at most the
// newest.
//
// Errors: CodeNewer (Unavailable) for a store of a newer cairn, whose note confirms the
// number; CodeForeign (Unavailable) for another program's database; CodeCorrupt
// (Internal) if the number is damaged.
func checkVersion(ctx context.Context, q queryer, version int) error {
	tables, note, err := readSchemaNote(ctx, q)
	if err != nil {
		return err
	}
	found := versionOf(tables, note)
	switch {
	case found == version && version > newest():
		return newerStore(version)
	case found > 0 && found == version, len(tables) == 0 && version == 0:
		return nil
	case found > 0:
		return damagedVersion(version, found)
	case len(tables) > 0:
		return foreign()
	}
	return fault.Newf(fault.Internal, CodeCorrupt, "the store is damaged: it has schema number %d but not the tables of a store", version).
		WithHint("run `cairn doctor --salvage`")
}

func readSchemaNote(ctx context.Context, q queryer) (tables map[string]bool, note string, err error) {
	tables = map[string]bool{}
	names, err := texts(ctx, q, selectTables)
	for _, name := range names {
		tables[name] = true
	}
	if err != nil || !tables["store_meta"] {
		return tables, "", err
	}
	notes, err := texts(ctx, q, selectNote)
	return tables, strings.Join(notes, ""), err
}

func texts(ctx context.Context, q queryer, query string) (out []string, err error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close(), rows.Err()) }()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return out, err
		}
		out = append(out, text)
	}
	return out, nil
}

func newerStore(version int) error {
	return fault.Newf(fault.Unavailable, CodeNewer,
		"the store has schema %d, this cairn knows %d", version, newest()).WithHint("upgrade cairn")
}

func damagedVersion(version, found int) error {
	return fault.Newf(fault.Internal, CodeCorrupt,
		"the store is damaged: its header has schema %d, its tables are those of schema %d", version, found).
		WithHint("run `cairn doctor --salvage`")
}

// ImageSchema returns the number of a damaged store's schema, from those of its note,
// its tables and its header that can be read. If none can be read, it returns the newest.
//
// Errors: CodeNewer (Unavailable) if note and header agree that a newer cairn wrote it.
func ImageSchema(image *sqlitefile.Image) (int, error) {
	tables := map[string]bool{}
	note := ""
	for _, o := range image.Schema() {
		tables[o.Name] = o.Kind == "table"
		if o.Name != "store_meta" {
			continue
		}
		image.Rows(o.Root, func(r sqlitefile.Row) bool {
			if len(r.Values) == 2 && r.Values[0] == SchemaNote {
				note = fmt.Sprint(r.Values[1])
			}
			return true
		})
	}
	header := image.Head.Version
	found := versionOf(tables, note)
	if found > newest() && found == header {
		return 0, newerStore(header)
	}
	version := 0
	for _, n := range []int{header, found, versionOf(tables, "")} {
		if n <= newest() {
			version = max(version, n)
		}
	}
	if version == 0 {
		version = newest()
	}
	return version, nil
}
