package record

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
)

// recordColumns are the columns of the record r that scanRecord reads.
const recordColumns = `r.key, r.number, ifnull(r.parent, 0), r.path, r.version, r.state, r.type, r.title, r.summary,
r.created_at, r.modified_at, r.creator, ifnull(r.resolved_by, 0), ifnull(r.related, ''), ifnull(r.metadata, ''),
ifnull(r.cited, ''), r.body`

// refColumns are the columns of the record r that scanRef reads.
const refColumns = `r.number, ifnull(r.parent, 0), r.state, r.type, r.title, r.summary, ifnull(r.cited, ''),
(SELECT count(*) FROM records c WHERE c.project_key = r.project_key AND c.parent = r.number),
(SELECT count(*) FROM records c WHERE c.project_key = r.project_key AND c.parent = r.number AND c.state = 'OPEN')`

const (
	selectRecord = `SELECT ` + recordColumns + ` FROM records r WHERE r.project_key = ? AND r.number = ?`
	selectRef    = `SELECT ` + refColumns + ` FROM records r WHERE r.project_key = ?1 AND r.number = ?4` // arguments of callTx.shown
	selectPath   = `SELECT path FROM records WHERE project_key = ? AND number = ?`
	selectExists = `SELECT EXISTS (SELECT 1 FROM records WHERE project_key = ? AND number = ?)`
)

// stored is a record with the further columns of its row.
type stored struct {
	Record
	key, number, parent int64
	path                []byte
	creator             int64 // session key
}

// find reads a record; sql.ErrNoRows if there is none.
func (s *callTx) find(ctx context.Context, number int64) (r stored, err error) {
	found := false
	err = s.tx.Each(ctx, func(rows *sql.Rows) (err error) {
		found = true
		r, err = scanRecord(rows)
		return err
	}, selectRecord, s.p.Key, number)
	if err == nil && found && s.readsLog() {
		found = false
		err = s.eachVersion(ctx, func(v logged) bool {
			r.Record, found = v.Record, true
			return false
		}, selectVersionAt, s.stream, r.ID, s.until)
	}
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return r, err
}

// mustFind reads the record with an id. A missing record is CodeNotFound.
func (s *callTx) mustFind(ctx context.Context, id string) (stored, error) {
	number, ok := parseID(id)
	if !ok {
		return stored{}, recordNotFound(id)
	}
	r, err := s.find(ctx, number)
	if errors.Is(err, sql.ErrNoRows) {
		err = recordNotFound(id)
	}
	return r, err
}

// mustExist returns the number of the record with an id. A missing record is
// CodeNotFound.
func (s *callTx) mustExist(ctx context.Context, id string) (number int64, err error) {
	if s.readsLog() {
		r, err := s.mustFind(ctx, id)
		return r.number, err
	}
	number, ok := parseID(id)
	if ok {
		err = s.tx.Get(ctx, []any{&ok}, selectExists, s.p.Key, number)
	}
	if err == nil && !ok {
		err = recordNotFound(id)
	}
	return number, err
}

func scanRecord(rows *sql.Rows) (r stored, err error) {
	var resolvedBy int64
	var related, metadata, cited string
	err = rows.Scan(&r.key, &r.number, &r.parent, &r.path, &r.Version, &r.State, &r.Type, &r.Title, &r.Summary,
		&r.Created, &r.Modified, &r.creator, &resolvedBy, &related, &metadata, &cited, &r.Body)
	if err != nil {
		return r, err
	}
	r.ID, r.ParentID = formatID(r.number), idOrNil(r.parent)
	if resolvedBy != 0 {
		r.ResolvedBy = formatID(resolvedBy)
	}
	if metadata != "" {
		r.Metadata = json.RawMessage(metadata)
	}
	return r, errors.Join(unpack(related, &r.Related), unpack(cited, &r.Cited))
}

func scanRef(rows *sql.Rows, more ...any) (r Ref, err error) {
	var number, parent int64
	var cited string
	err = rows.Scan(append([]any{
		&number, &parent, &r.State, &r.Type, &r.Title, &r.Summary, &cited, &r.ChildrenCount, &r.OpenChildrenCount,
	}, more...)...)
	r.ID, r.ParentID = formatID(number), idOrNil(parent)
	return r, errors.Join(err, unpack(cited, &r.Cited))
}

// ref returns the reference of a record, in a list that is empty if there is no such record.
func (s *callTx) ref(ctx context.Context, number int64) ([]Ref, error) {
	query, args := s.shown(selectRef, number)
	return s.refs(ctx, query, args...)
}

// refs returns the references that a query selects; never nil.
func (s *callTx) refs(ctx context.Context, query string, args ...any) ([]Ref, error) {
	list := []Ref{}
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		r, err := scanRef(rows)
		list = append(list, r)
		return err
	}, query, args...)
	return list, err
}

// records returns the complete records that a query selects; never nil.
func (s *callTx) records(ctx context.Context, query string, args ...any) ([]Record, error) {
	list := []Record{}
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		r, err := scanRecord(rows)
		list = append(list, r.Record)
		return err
	}, query, args...)
	return list, err
}

// columnsOf returns the values of a version in the order of updateRecord, from version
// on.
func columnsOf(r *Record) ([]any, error) {
	related, err := pack(r.Related)
	if err != nil {
		return nil, err
	}
	cited, err := pack(r.Cited)
	if err != nil {
		return nil, err
	}
	var metadata any
	if len(r.Metadata) > 0 {
		metadata = string(r.Metadata)
	}
	return []any{
		r.Version, string(r.State), r.Type, r.Title, r.Summary, int64(r.Modified), numberOrNull(r.ResolvedBy),
		related, metadata, cited, r.Body,
	}, nil
}

// pathOf returns the path of a new record.
func (s *callTx) pathOf(ctx context.Context, parent *string, number int64) ([]byte, error) {
	var path []byte
	if above, ok := parseID(deref(parent)); ok {
		err := s.tx.Get(ctx, []any{&path}, selectPath, s.p.Key, above)
		if errors.Is(err, sql.ErrNoRows) { // purged
			path = step(above)
		} else if err != nil {
			return nil, err
		}
	}
	return append(path[:len(path):len(path)], step(number)...), nil
}

// step returns a number's part of a path.
func step(number int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(number)) }

// behind returns an upper bound of the paths that begin with path.
func behind(path []byte) []byte {
	end := append([]byte(nil), path...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			break
		}
	}
	return end
}

func idOrNil(number int64) *string {
	if number == 0 {
		return nil
	}
	id := formatID(number)
	return &id
}

func numberOrNull(id string) any {
	number, ok := parseID(id)
	if !ok {
		return nil
	}
	return number
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func pack[T any](list []T) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(list)
	return string(data), err
}

func unpack[T any](text string, list *[]T) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), list)
}
