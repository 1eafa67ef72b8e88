package record

import (
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"

	"cairn/internal/store"
)

// RecordColumns are the columns of the record r that ScanRecord reads.
const RecordColumns = `r.key, r.number, ifnull(r.parent, 0), r.path, r.version, r.state, r.type, r.title, r.summary,
r.created_at, r.modified_at, r.creator, ifnull(r.resolved_by, 0), ifnull(r.related, ''), ifnull(r.metadata, ''),
ifnull(r.cited, ''), r.body`

// RefColumns are the columns of the record r that ScanRef reads.
const RefColumns = `r.number, ifnull(r.parent, 0), r.state, r.type, r.title, r.summary, ifnull(r.cited, ''),
(SELECT count(*) FROM records c WHERE c.project_key = r.project_key AND c.parent = r.number),
(SELECT count(*) FROM records c WHERE c.project_key = r.project_key AND c.parent = r.number AND c.state = 'OPEN')`

const (
	selectRecord = `SELECT ` + RecordColumns + ` FROM records r WHERE r.project_key = ? AND r.number = ?`
	selectRef    = `SELECT ` + RefColumns + ` FROM records r WHERE r.project_key = ?1 AND r.number = ?4` // arguments of CallTx.shown
	selectPath   = `SELECT path FROM records WHERE project_key = ? AND number = ?`
	selectOfAll  = `SELECT ` + RecordColumns + ` FROM records r ORDER BY r.key`
	selectLast   = `SELECT last_record FROM projects WHERE key = ?`
	selectExists = `SELECT EXISTS (SELECT 1 FROM records WHERE project_key = ? AND number = ?)`
)

// Stored is a record with the further columns of its row.
type Stored struct {
	Record
	Key, Number, Parent int64
	Path                []byte
	Creator             int64 // session key
}

// Find reads a record; sql.ErrNoRows if there is none.
func (s *CallTx) Find(ctx context.Context, number int64) (r Stored, err error) {
	found := false
	err = s.Tx.Each(ctx, func(rows *sql.Rows) (err error) {
		found = true
		r, err = ScanRecord(rows)
		return err
	}, selectRecord, s.Project.Key, number)
	if err == nil && found && s.readsLog() {
		found = false
		err = s.EachVersion(ctx, func(v Logged) bool {
			r.Record, found = v.Record, true
			return false
		}, selectVersionAt, s.Stream, r.ID, s.Until)
	}
	if err == nil && !found {
		err = sql.ErrNoRows
	}
	return r, err
}

// LastNumber returns the highest number that a record of the project has or had.
func (s *CallTx) LastNumber(ctx context.Context) (number int64, err error) {
	err = s.Tx.Get(ctx, []any{&number}, selectLast, s.Project.Key)
	return number, err
}

// Exists reports whether there is a record.
func (s *CallTx) Exists(ctx context.Context, number int64) (found bool, err error) {
	err = s.Tx.Get(ctx, []any{&found}, selectExists, s.Project.Key, number)
	return found, err
}

// MustFind reads the record with an id. A missing record is CodeNotFound.
func (s *CallTx) MustFind(ctx context.Context, id string) (Stored, error) {
	number, ok := ParseID(id)
	if !ok {
		return Stored{}, NotFound(id)
	}
	r, err := s.Find(ctx, number)
	if errors.Is(err, sql.ErrNoRows) {
		err = NotFound(id)
	}
	return r, err
}

// MustExist returns the number of the record with an id. A missing record is
// CodeNotFound.
func (s *CallTx) MustExist(ctx context.Context, id string) (number int64, err error) {
	if s.readsLog() {
		r, err := s.MustFind(ctx, id)
		return r.Number, err
	}
	number, ok := ParseID(id)
	if ok {
		ok, err = s.Exists(ctx, number)
	}
	if err == nil && !ok {
		err = NotFound(id)
	}
	return number, err
}

// ScanRecord reads a row of RecordColumns.
func ScanRecord(rows *sql.Rows) (r Stored, err error) {
	var resolvedBy int64
	var related, metadata, cited string
	err = rows.Scan(&r.Key, &r.Number, &r.Parent, &r.Path, &r.Version, &r.State, &r.Type, &r.Title, &r.Summary,
		&r.Created, &r.Modified, &r.Creator, &resolvedBy, &related, &metadata, &cited, &r.Body)
	if err != nil {
		return r, err
	}
	r.ID, r.ParentID = FormatID(r.Number), idOrNil(r.Parent)
	if resolvedBy != 0 {
		r.ResolvedBy = FormatID(resolvedBy)
	}
	if metadata != "" {
		r.Metadata = json.RawMessage(metadata)
	}
	return r, errors.Join(UnpackList(related, &r.Related), UnpackList(cited, &r.Cited))
}

// ScanRef reads a row of RefColumns, with further columns into more.
func ScanRef(rows *sql.Rows, more ...any) (r Ref, err error) {
	var number, parent int64
	var cited string
	err = rows.Scan(append([]any{
		&number, &parent, &r.State, &r.Type, &r.Title, &r.Summary, &cited, &r.ChildrenCount, &r.OpenChildrenCount,
	}, more...)...)
	r.ID, r.ParentID = FormatID(number), idOrNil(parent)
	return r, errors.Join(err, UnpackList(cited, &r.Cited))
}

// Ref returns the reference of a record, in a list that is empty if there is no such record.
func (s *CallTx) Ref(ctx context.Context, number int64) ([]Ref, error) {
	query, args := s.Shown(selectRef, number)
	return s.Refs(ctx, query, args...)
}

// Refs returns the references that a query selects; never nil.
func (s *CallTx) Refs(ctx context.Context, query string, args ...any) ([]Ref, error) {
	list := []Ref{}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		r, err := ScanRef(rows)
		list = append(list, r)
		return err
	}, query, args...)
	return list, err
}

// Records returns the complete records that a query selects; never nil.
func (s *CallTx) Records(ctx context.Context, query string, args ...any) ([]Record, error) {
	list := []Record{}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		r, err := ScanRecord(rows)
		list = append(list, r.Record)
		return err
	}, query, args...)
	return list, err
}

// EachOfAll calls fn with the records of all projects.
func EachOfAll(ctx context.Context, tx *store.Tx, fn func(r Stored) error) error {
	return tx.Each(ctx, func(rows *sql.Rows) error {
		r, err := ScanRecord(rows)
		if err != nil {
			return err
		}
		return fn(r)
	}, selectOfAll)
}

// ColumnsOf returns the values of a version in the order of updateRecord, from version
// on.
func ColumnsOf(r *Record) ([]any, error) {
	related, err := PackList(r.Related)
	if err != nil {
		return nil, err
	}
	cited, err := PackList(r.Cited)
	if err != nil {
		return nil, err
	}
	var metadata any
	if len(r.Metadata) > 0 {
		metadata = string(r.Metadata)
	}
	return []any{
		r.Version, string(r.State), r.Type, r.Title, r.Summary, int64(r.Modified), NumberOrNull(r.ResolvedBy),
		related, metadata, cited, r.Body,
	}, nil
}

// PathOf returns the path of a new record.
func (s *CallTx) PathOf(ctx context.Context, parent *string, number int64) ([]byte, error) {
	var path []byte
	if above, ok := ParseID(Deref(parent)); ok {
		err := s.Tx.Get(ctx, []any{&path}, selectPath, s.Project.Key, above)
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

// Behind returns an upper bound of the paths that begin with path.
func Behind(path []byte) []byte {
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
	id := FormatID(number)
	return &id
}

// NumberOrNull returns the number in an id as an argument of SQL, nil for "".
func NumberOrNull(id string) any {
	number, ok := ParseID(id)
	if !ok {
		return nil
	}
	return number
}

// Deref returns the text, "" for nil.
func Deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// PackList returns a list as JSON for a column or json_each, nil for an empty list.
func PackList[T any](list []T) (any, error) {
	if len(list) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(list)
	return string(data), err
}

// UnpackList reads a list that PackList has written.
func UnpackList[T any](text string, list *[]T) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), list)
}
