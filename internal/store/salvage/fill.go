package salvage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"cairn/internal/sqlitefile"
	"cairn/internal/store"
)

// shape is a table of the new store.
type shape struct {
	name    string
	columns []column
	stored  []int // the columns in stored order
	keys    []int // the columns of the primary key
	rowid   bool  // whether it is stored by rowid
	alias   int   // the column that is the rowid, -1 if there is none
	indexes []indexShape
}

type column struct {
	name    string
	kind    string // the declared type
	notNull bool
	given   bool // whether it has a default
}

// indexShape is an index of a table, over all or some of its rows.
type indexShape struct {
	name    string
	unique  bool  // over all rows
	partial bool  // over some rows
	columns []int // -1 for an expression; the rowid follows them
	all     []int // for a table without rowid: the columns, then those of the primary key
}

const (
	// The tables of the index of turns are omitted, because they are derived from the
	// rows.
	listTables = `SELECT name, wr FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND name NOT LIKE 'sqlite_%'
    AND name NOT IN ('turns', 'stale_turns') ORDER BY name`
	listColumns = `SELECT name, type, "notnull", dflt_value IS NOT NULL, pk FROM pragma_table_info(?) ORDER BY cid`
	listIndexes = `SELECT name, "unique" AND NOT partial, partial FROM pragma_index_list(?) WHERE origin <> 'pk'`
	listStored  = `SELECT cid FROM pragma_index_xinfo(?) ORDER BY seqno`
	listKeys    = `SELECT cid FROM pragma_index_xinfo(?) WHERE key = 1 ORDER BY seqno`
)

// filling writes the rows of one salvage into the new store. It does not use Write,
// because the rows' changes are copied too.
type filling struct {
	conn   *sql.Conn
	stmts  map[string]*sql.Stmt
	image  *sqlitefile.Image
	roots  map[string]uint32 // root pages of the old store's tables and indexes
	shapes []*shape
	out    *Report
	report func(string)
	newest map[string]int64 // table → highest row number known to have been used
	given  map[string]int64 // table → highest row number assigned by the old store, if known
	since  int              // rows since the last commit
	rows   *inventory
}

// fillFrom copies every readable row of the old store into the new one.
func fillFrom(ctx context.Context, c Config, conn *sql.Conn, image *sqlitefile.Image, out *Report) (*inventory, error) {
	f := &filling{
		conn: conn, stmts: map[string]*sql.Stmt{}, image: image, out: out, report: c.report, roots: map[string]uint32{}, newest: map[string]int64{}, given: map[string]int64{},
		rows: &inventory{tables: map[string]*tableRows{}},
	}
	err := f.run(ctx)
	for _, st := range f.stmts {
		err = errors.Join(err, st.Close())
	}
	return f.rows, err
}

func (f *filling) exec(ctx context.Context, query string) error {
	_, err := f.conn.ExecContext(ctx, query)
	return err
}

// prepared returns the statement for a query. It prepares the statement at first use.
func (f *filling) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if st := f.stmts[query]; st != nil {
		return st, nil
	}
	st, err := f.conn.PrepareContext(ctx, query)
	if err == nil {
		f.stmts[query] = st
	}
	return st, err
}

func (f *filling) run(ctx context.Context) error {
	for _, p := range []string{"PRAGMA foreign_keys=OFF", "PRAGMA synchronous=OFF", "PRAGMA cache_size=-65536"} {
		if err := f.exec(ctx, p); err != nil {
			return err
		}
	}
	if err := f.plan(ctx); err != nil {
		return err
	}
	f.readNumbers()
	if err := f.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, t := range f.shapes {
		if err := f.table(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for _, step := range []func(context.Context) error{f.addParents, f.reserveNumbers} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return f.exec(ctx, "COMMIT")
}

// plan reads the new store's tables and finds the trees of the old store's.
func (f *filling) plan(ctx context.Context) error {
	usual := map[string]uint32{} // root pages in a store that was never rebuilt
	err := f.each(ctx, func(r *sql.Rows) error {
		var name string
		var root uint32
		err := r.Scan(&name, &root)
		usual[name] = root
		return err
	}, `SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0`)
	if err != nil {
		return err
	}
	err = f.each(ctx, func(r *sql.Rows) error {
		t := &shape{alias: -1}
		var withoutRowid bool
		err := r.Scan(&t.name, &withoutRowid)
		t.rowid = !withoutRowid
		f.shapes = append(f.shapes, t)
		return err
	}, listTables)
	for _, t := range f.shapes {
		if err == nil {
			err = f.describe(ctx, t)
		}
	}
	f.locate(usual)
	return err
}

// locate finds the trees of tables and indexes. If the old schema has lost a table, it
// uses the usual root page, provided that the other tables are at theirs. Otherwise it
// searches the unassigned trees for one whose rows fit the table, and omits the table's
// indexes.
func (f *filling) locate(usual map[string]uint32) {
	taken := map[uint32]bool{}
	rebuilt := false
	for _, o := range f.image.Schema() {
		f.roots[o.Name] = o.Root
		taken[o.Root] = true
		rebuilt = rebuilt || usual[o.Name] != o.Root && usual[o.Name] > 0
	}
	if len(f.roots) == 0 {
		rebuilt = !f.looksUsual(usual)
	}
	if !rebuilt {
		for name, root := range usual {
			if _, told := f.roots[name]; !told && !taken[root] {
				f.roots[name] = root
			}
		}
		return
	}
	numbers := &shape{name: "sqlite_sequence", rowid: true, alias: -1, stored: []int{0, 1},
		columns: []column{{name: "name", kind: "TEXT", notNull: true}, {name: "seq", kind: "INTEGER", notNull: true}}}
	for _, t := range append([]*shape{numbers}, f.shapes...) {
		if _, told := f.roots[t.name]; told {
			continue
		}
		for _, root := range append([]uint32{usual[t.name]}, f.image.Roots()...) {
			if root > 0 && !taken[root] && f.looksLike(t, root) {
				f.roots[t.name] = root
				taken[root] = true
				break
			}
		}
	}
}

// looksUsual reports whether most tables with rows are at their usual root pages.
func (f *filling) looksUsual(usual map[string]uint32) bool {
	fit, other := 0, 0
	for _, t := range f.shapes {
		used := false
		f.image.Rows(usual[t.name], func(sqlitefile.Row) bool { used = true; return false })
		switch {
		case used && f.looksLike(t, usual[t.name]):
			fit++
		case used:
			other++
		}
	}
	return fit > 2 && fit >= 4*other
}

// looksLike reports whether the first rows of a tree all fit a table. It is false for a
// tree without rows.
func (f *filling) looksLike(t *shape, root uint32) bool {
	if f.image.IsTable(root) != t.rowid {
		return false
	}
	const enough = 200
	rows, like := 0, true
	f.image.Rows(root, func(r sqlitefile.Row) bool {
		rows++
		_, like = t.read(r)
		like = like && len(r.Values) == len(t.columns)
		return like && rows < enough
	})
	return like && rows > 0
}

// describe reads a table's columns and indexes.
func (f *filling) describe(ctx context.Context, t *shape) error {
	var keys, rest []int
	at := map[int]int{} // position in the primary key → column
	err := f.each(ctx, func(r *sql.Rows) error {
		var c column
		var key int
		err := r.Scan(&c.name, &c.kind, &c.notNull, &c.given, &key)
		n := len(t.columns)
		if key > 0 {
			at[key] = n
		} else {
			rest = append(rest, n)
		}
		t.columns = append(t.columns, c)
		return err
	}, listColumns, t.name)
	if err != nil {
		return err
	}
	for key := range len(at) {
		keys = append(keys, at[key+1])
	}
	t.keys = slices.Clone(keys)
	t.stored = append(keys, rest...)
	if t.rowid {
		slices.Sort(t.stored)
		if len(keys) == 1 && strings.EqualFold(t.columns[keys[0]].kind, "INTEGER") {
			t.alias = keys[0]
		}
	}
	err = f.each(ctx, func(r *sql.Rows) error {
		var i indexShape
		err := r.Scan(&i.name, &i.unique, &i.partial)
		t.indexes = append(t.indexes, i)
		return err
	}, listIndexes, t.name)
	for n := range t.indexes {
		i := &t.indexes[n]
		if err == nil {
			err = f.each(ctx, func(r *sql.Rows) error {
				var c int
				err := r.Scan(&c)
				i.columns = append(i.columns, max(c, -1))
				return err
			}, listKeys, i.name)
		}
		if err == nil && !t.rowid {
			err = f.each(ctx, func(r *sql.Rows) error {
				var c int
				err := r.Scan(&c)
				i.all = append(i.all, c)
				return err
			}, listStored, i.name)
		}
	}
	return err
}

// each runs a query on the filling's connection.
func (f *filling) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	rows, err := f.conn.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close(), rows.Err()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return nil
}

// table copies one table's rows. Then it finds lost rows with the indexes and rebuilds
// those for which the indexes contain enough.
func (f *filling) table(ctx context.Context, t *shape) error {
	f.report("reading " + t.name)
	rows := newTableRows(t)
	f.rows.tables[t.name] = rows
	var err error
	rows.unreadable = int64(f.image.Rows(f.roots[t.name], func(r sqlitefile.Row) bool {
		var ok bool
		if ok, err = f.put(ctx, t, r); err != nil {
			return false
		}
		if !ok {
			rows.unreadable++
			return true
		}
		rows.keep(r)
		f.newest[t.name] = max(f.newest[t.name], r.ID)
		return true
	})) + rows.unreadable
	if err != nil {
		return err
	}
	rows.incomplete, rows.given = f.incomplete(t), f.given[t.name]
	if t.rowid && len(t.indexes) > 0 {
		rows.missing = f.missing(t, rows.kept)
		err = f.restore(ctx, t, rows.missing)
	} else if !t.rowid {
		f.missingKeys(t, rows)
	}
	f.out.Tables = append(f.out.Tables, Table{Name: t.name})
	return err
}

// put inserts one row of the old store. It returns false if the row does not fit the
// table.
func (f *filling) put(ctx context.Context, t *shape, r sqlitefile.Row) (bool, error) {
	row, ok := t.read(r)
	if !ok || f.beyond(t, r.ID) {
		return false, nil
	}
	if t.name == "store_meta" && r.Values[0] == store.SchemaNote {
		return true, nil // the new store has its own
	}
	if t.rowid && t.alias < 0 {
		return f.insert(ctx, t, row, r.ID)
	}
	return f.insert(ctx, t, row, nil)
}

// read returns a row's values by column. ok is false if the row does not fit the table.
func (t *shape) read(r sqlitefile.Row) (row map[int]any, ok bool) {
	if len(r.Values) > len(t.stored) || len(r.Values) == 0 {
		return nil, false
	}
	row = make(map[int]any, len(r.Values))
	for i, v := range r.Values {
		c := t.stored[i]
		if c == t.alias {
			if v != nil {
				return nil, false
			}
			v = r.ID
		}
		if !suits(v, t.columns[c]) {
			return nil, false
		}
		row[c] = v
	}
	return row, true
}

// suits reports whether a value is valid in a column. A text with a NUL is damage,
// because cairn never stores one.
func suits(v any, c column) bool {
	switch v := v.(type) {
	case nil:
		return !c.notNull
	case int64:
		return strings.EqualFold(c.kind, "INTEGER") || strings.EqualFold(c.kind, "REAL")
	case float64:
		return strings.EqualFold(c.kind, "REAL")
	case string:
		return strings.EqualFold(c.kind, "TEXT") && !strings.Contains(v, "\x00")
	case []byte:
		return strings.EqualFold(c.kind, "BLOB")
	}
	return false
}

// commitEvery is the number of rows per transaction of the new store.
const commitEvery = 20_000

// insert stores a row. It returns false if the row violates a constraint. number is the
// rowid if no column is an alias of it, else nil.
func (f *filling) insert(ctx context.Context, t *shape, row map[int]any, number any) (bool, error) {
	var names []string
	var values []any
	for i, c := range t.columns {
		if v, ok := row[i]; ok {
			names, values = append(names, quoted(c.name)), append(values, v)
		}
	}
	if number != nil {
		names, values = append(names, "rowid"), append(values, number)
	}
	verb := "INSERT OR IGNORE"
	if t.name == "store_meta" { // the new store already has its own
		verb = "INSERT OR REPLACE"
	}
	query := fmt.Sprintf("%s INTO %s (%s) VALUES (?%s)", verb, quoted(t.name),
		strings.Join(names, ", "), strings.Repeat(", ?", len(names)-1))
	st, err := f.prepared(ctx, query)
	if err != nil {
		return false, err
	}
	res, err := st.ExecContext(ctx, values...)
	if err != nil {
		return false, err
	}
	if f.since++; f.since >= commitEvery {
		f.since = 0
		if err := errors.Join(f.exec(ctx, "COMMIT"), f.exec(ctx, "BEGIN IMMEDIATE")); err != nil {
			return false, err
		}
	}
	n, err := res.RowsAffected()
	return n == 1, err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// missing returns the rows that an index has and the table lacks, with their values in
// indexes.
func (f *filling) missing(t *shape, seen idSet) map[int64]map[int]any {
	lost := map[int64]map[int]any{}
	for _, index := range t.indexes {
		f.image.Rows(f.roots[index.name], func(r sqlitefile.Row) bool {
			last := len(r.Values) - 1
			id, ok := int64(0), last == len(index.columns)
			if ok {
				id, ok = r.Values[last].(int64)
			}
			for i, c := range index.columns {
				ok = ok && (c < 0 || suits(r.Values[i], t.columns[c]))
			}
			if !ok || id < 1 || f.beyond(t, id) || seen.has(id) {
				return true
			}
			f.newest[t.name] = max(f.newest[t.name], id)
			if lost[id] == nil {
				lost[id] = map[int]any{}
			}
			for i, c := range index.columns {
				if c >= 0 {
					lost[id][c] = r.Values[i]
				}
			}
			return true
		})
	}
	return lost
}

// restore rebuilds the lost rows whose required columns are all in indexes. Rows that
// others refer to are completed with placeholders later.
func (f *filling) restore(ctx context.Context, t *shape, lost map[int64]map[int]any) error {
	if t.alias < 0 {
		return nil
	}
	for id, told := range lost {
		row := maps.Clone(told)
		row[t.alias] = id
		if len(row) < len(t.columns) {
			if !t.identifies() {
				continue
			}
			t.complete(row, id)
		}
		if _, err := f.insert(ctx, t, row, nil); err != nil {
			return err
		}
	}
	return nil
}

// identifies reports whether a row of this table must be kept even if only its name is
// known, because rows of other tables refer to it.
func (t *shape) identifies() bool { return t.name == "projects" || t.name == "sessions" }

// complete sets placeholders for unknown columns that must not be NULL. as identifies the
// row.
func (t *shape) complete(row map[int]any, as any) {
	for i, c := range t.columns {
		if _, known := row[i]; known || !c.notNull || c.given {
			continue
		}
		name, isText := as.(string)
		switch {
		case strings.EqualFold(c.kind, "INTEGER"):
			row[i] = int64(0)
		case strings.EqualFold(c.kind, "BLOB"):
			row[i] = []byte{}
		case isText:
			row[i] = name
		default:
			row[i] = fmt.Sprintf("lost-%v", as)
		}
	}
}
