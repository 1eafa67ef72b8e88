package sqlitefile

import (
	"encoding/binary"
	"math"
)

// Row is one entry of a tree. Values are nil, int64, float64, string or []byte, in stored
// order. A row may have fewer values than its table has columns now. In a table, ID is
// the rowid, and the value of the column that is an alias of it is nil. In an index, ID
// is 0 and the last value is the rowid.
type Row struct {
	ID     int64
	Values []any
}

// Rows calls yield with every row of the tree with that root page until yield returns
// false. The rows of an intact table are in the order of their ids; otherwise the order
// is undefined. It returns how many entries on readable pages could not be read.
func (m *Image) Rows(root uint32, yield func(Row) bool) (unreadable int) {
	for _, n := range m.trees[root] {
		t, ok := m.tree(n)
		if !ok || t.kind == tableInterior {
			continue
		}
		for i := range t.cells {
			row, ok := m.row(&t, i)
			if !ok {
				unreadable++
				continue
			}
			if !yield(row) {
				return unreadable
			}
		}
	}
	return unreadable
}

// row decodes one cell.
func (m *Image) row(t *tree, i int) (row Row, ok bool) {
	at := t.cell(i, m.usable)
	if at == 0 {
		return row, false
	}
	if t.kind == indexInterior {
		at += 4 // skip the number of the left child page
	}
	rest := t.data[at:m.usable]
	size, n := varint(rest)
	rest = rest[n:]
	if n == 0 || size > uint64(m.pages)*uint64(m.usable) {
		return row, false
	}
	if t.kind == tableLeaf {
		id, n := varint(rest)
		if n == 0 {
			return row, false
		}
		row.ID, rest = int64(id), rest[n:]
	}
	payload, ok := m.payload(rest, int(size), t.kind == tableLeaf)
	if !ok {
		return row, false
	}
	row.Values, ok = values(payload)
	return row, ok
}

// payload joins the part of a payload in the cell with the parts on overflow pages.
func (m *Image) payload(cell []byte, size int, table bool) ([]byte, bool) {
	most := (m.usable-12)*64/255 - 23
	if table {
		most = m.usable - 35
	}
	if size <= most {
		if size > len(cell) {
			return nil, false
		}
		return cell[:size], true
	}
	least := (m.usable-12)*32/255 - 23
	here := least + (size-least)%(m.usable-4)
	if here > most {
		here = least
	}
	if here+4 > len(cell) {
		return nil, false
	}
	out := append(make([]byte, 0, min(size, 1<<20)), cell[:here]...)
	next := binary.BigEndian.Uint32(cell[here:])
	for len(out) < size {
		if next < 2 || m.special(next) || m.freePage[next] || next < uint32(len(m.owner)) && m.owner[next] != 0 {
			return nil, false
		}
		data := m.page(next)
		if data == nil {
			return nil, false
		}
		next = binary.BigEndian.Uint32(data)
		out = append(out, data[4:4+min(size-len(out), m.usable-4)]...)
	}
	return out, next == 0
}

// varint reads SQLite's variable-length integer. n is 0 if the integer is truncated.
func varint(b []byte) (v uint64, n int) {
	for n = 0; n < 8; n++ {
		if n >= len(b) {
			return 0, 0
		}
		v = v<<7 | uint64(b[n]&0x7f)
		if b[n] < 0x80 {
			return v, n + 1
		}
	}
	if len(b) < 9 {
		return 0, 0
	}
	return v<<8 | uint64(b[8]), 9
}

// values decodes a record.
func values(record []byte) (out []any, ok bool) {
	size, n := varint(record)
	if n == 0 || size < uint64(n) || size > uint64(len(record)) {
		return nil, false
	}
	head, body := record[n:size], record[size:]
	for len(head) > 0 {
		kind, n := varint(head)
		if n == 0 {
			return nil, false
		}
		head = head[n:]
		v, n, ok := value(kind, body)
		if !ok {
			return nil, false
		}
		out, body = append(out, v), body[n:]
	}
	return out, len(body) == 0
}

// value decodes one value and returns its length in bytes.
func value(kind uint64, body []byte) (v any, n int, ok bool) {
	switch {
	case kind == 0:
		return nil, 0, true
	case kind <= 6:
		n = [...]int{0, 1, 2, 3, 4, 6, 8}[kind]
		if n > len(body) {
			return nil, 0, false
		}
		i := int64(int8(body[0]))
		for _, b := range body[1:n] {
			i = i<<8 | int64(b)
		}
		return i, n, true
	case kind == 7:
		if len(body) < 8 {
			return nil, 0, false
		}
		return math.Float64frombits(binary.BigEndian.Uint64(body)), 8, true
	case kind <= 9:
		return int64(kind - 8), 0, true
	case kind <= 11 || (kind-12)/2 > uint64(len(body)):
		return nil, 0, false
	}
	n = int(kind-12) / 2
	if kind%2 == 0 {
		return append([]byte{}, body[:n]...), n, true
	}
	return string(body[:n]), n, true
}

// Object is a table or an index of the schema.
type Object struct {
	Kind string // table or index
	Name string
	Root uint32
}

// Schema returns the tables and indexes of the schema that can still be read.
func (m *Image) Schema() (out []Object) {
	if m.pages == 0 {
		return nil
	}
	m.Rows(1, func(r Row) bool {
		if len(r.Values) < 4 {
			return true
		}
		kind, _ := r.Values[0].(string)
		name, _ := r.Values[1].(string)
		root, _ := r.Values[3].(int64)
		if (kind == "table" || kind == "index") && name != "" && root > 0 && root <= int64(m.pages) {
			out = append(out, Object{kind, name, uint32(root)})
		}
		return true
	})
	return out
}
