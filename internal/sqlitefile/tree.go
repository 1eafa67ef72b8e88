package sqlitefile

import (
	"encoding/binary"
	"slices"
)

// Kinds of b-tree pages: the first byte of a page.
const (
	indexInterior = 2
	tableInterior = 5
	indexLeaf     = 10
	tableLeaf     = 13
)

// Kinds of entries of the pointer map.
const (
	mapRoot  = 1
	mapFree  = 2
	mapChild = 5
)

// mapEntry is the size in bytes of a page's entry in the pointer map.
const mapEntry = 5

// tree is the header of a b-tree page.
type tree struct {
	data  []byte
	at    int // offset of the header: 100 on page 1
	kind  byte
	cells int
}

// tree reads the header of a b-tree page. ok is false if the page is not a b-tree page.
func (m *Image) tree(n uint32) (t tree, ok bool) {
	t.data = m.page(n)
	if t.data == nil {
		return t, false
	}
	if n == 1 {
		t.at = headerSize
	}
	t.kind = t.data[t.at]
	t.cells = int(binary.BigEndian.Uint16(t.data[t.at+3:]))
	switch t.kind {
	case indexInterior, tableInterior, indexLeaf, tableLeaf:
		return t, t.pointers()+2*t.cells <= m.usable
	}
	return t, false
}

func (t *tree) interior() bool { return t.kind == indexInterior || t.kind == tableInterior }

// pointers returns the offset of the array of cell pointers.
func (t *tree) pointers() int {
	if t.interior() {
		return t.at + 12
	}
	return t.at + 8
}

// cell returns the offset of a cell, or 0 if it is out of range.
func (t *tree) cell(i, usable int) int {
	at := int(binary.BigEndian.Uint16(t.data[t.pointers()+2*i:]))
	if at < t.pointers()+2*t.cells || at+4 > usable {
		return 0
	}
	return at
}

// children returns the pages below an interior page, in key order.
func (t *tree) children(usable int) (out []uint32) {
	for i := range t.cells {
		if at := t.cell(i, usable); at > 0 {
			out = append(out, binary.BigEndian.Uint32(t.data[at:]))
		}
	}
	return append(out, binary.BigEndian.Uint32(t.data[t.at+8:]))
}

// special reports whether a page contains the file's bookkeeping and no rows.
func (m *Image) special(n uint32) bool {
	return n == m.lockPage() || m.mapped && n == m.mapPage(n)
}

func (m *Image) lockPage() uint32 { return uint32(lockByte/m.size) + 1 }

// mapPage returns the page of the pointer map that has the entry of page n, or 0 for page
// 1.
func (m *Image) mapPage(n uint32) uint32 {
	if n < 2 {
		return 0
	}
	each := uint32(m.usable/mapEntry) + 1
	page := (n-2)/each*each + 2
	if page == m.lockPage() {
		page++
	}
	return page
}

// looksMapped reports whether the file has a pointer map. If the header is lost, it
// checks whether the map's first page is valid.
func (m *Image) looksMapped() bool {
	if head := m.page(1); m.Head.Found && head != nil {
		return binary.BigEndian.Uint32(head[atLargestRoot:]) > 0
	}
	return m.pages > 2 && m.validMap(2)
}

// validMap reports whether a page can be a page of the pointer map.
func (m *Image) validMap(page uint32) bool {
	if data, known := m.maps[page]; known {
		return data != nil
	}
	data := m.page(page)
	valid := data != nil
	for i := 0; valid && i+mapEntry <= m.usable; i += mapEntry {
		if uint64(page)+1+uint64(i/mapEntry) > uint64(m.pages) {
			break // entries of removed pages keep their old content
		}
		kind, parent := data[i], binary.BigEndian.Uint32(data[i+1:])
		valid = kind <= mapChild && (kind != 0 || parent == 0) && (kind != mapChild || parent > 0)
	}
	if !valid {
		data = nil
	}
	m.maps[page] = data
	return valid
}

// parent returns a page's entry in the pointer map. kind is 0 if there is no entry.
func (m *Image) parent(n uint32) (kind byte, parent uint32) {
	page := m.mapPage(n)
	if !m.mapped || page == 0 || page >= n || !m.validMap(page) {
		return 0, 0
	}
	data, at := m.maps[page], int(n-page-1)*mapEntry
	if at+mapEntry > m.usable {
		return 0, 0
	}
	return data[at], binary.BigEndian.Uint32(data[at+1:])
}

// findFree follows the list of free pages, so that deleted rows stay deleted.
func (m *Image) findFree() {
	head := m.page(1)
	if !m.Head.Found || head == nil {
		return
	}
	trunk := binary.BigEndian.Uint32(head[atFreeTrunk:])
	for trunk > 0 && trunk <= m.pages && !m.freePage[trunk] {
		data := m.page(trunk)
		if data == nil {
			return
		}
		m.freePage[trunk] = true
		leaves := int(binary.BigEndian.Uint32(data[4:]))
		for i := 0; i < leaves && 8+4*i+4 <= m.usable; i++ {
			m.freePage[binary.BigEndian.Uint32(data[8+4*i:])] = true
		}
		trunk = binary.BigEndian.Uint32(data)
	}
}

// claim assigns each page of a tree to its root: first from the roots downwards, then,
// for pages without a readable parent, upwards by the pointer map.
func (m *Image) claim() {
	if m.pages == 0 {
		return
	}
	roots := []uint32{1}
	for n := uint32(2); n <= m.pages; n++ {
		if kind, _ := m.parent(n); kind == mapRoot {
			roots = append(roots, n)
		}
	}
	for _, root := range roots {
		m.descend(root)
	}
	m.adopt()
	for _, o := range m.Schema() { // roots that the pointer map has lost
		if o.Root > 1 && o.Root <= m.pages && m.owner[o.Root] == 0 {
			m.descend(o.Root)
		}
	}
	m.adopt()
}

// descend claims all pages below a root.
func (m *Image) descend(root uint32) {
	m.owner[root] = root
	for pending := []uint32{root}; len(pending) > 0; {
		n := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		t, ok := m.tree(n)
		if !ok {
			m.Damaged++
			m.broken[root] = true
			continue
		}
		m.trees[root] = append(m.trees[root], n)
		if !t.interior() {
			continue
		}
		below := t.children(m.usable)
		for i := len(below) - 1; i >= 0; i-- {
			if c := below[i]; m.mayOwn(n, c) {
				m.owner[c] = root
				pending = append(pending, c)
			} else {
				m.broken[root] = true
			}
		}
	}
}

// mayOwn reports whether a page can be the child of another page. The pointer map
// decides, because a damaged page may contain any number.
func (m *Image) mayOwn(n, child uint32) bool {
	if child < 2 || child > m.pages || m.owner[child] != 0 || m.special(child) || m.freePage[child] {
		return false
	}
	kind, parent := m.parent(child)
	return kind == 0 || kind == mapChild && parent == n
}

// adopt claims the pages that cannot be reached from the root any more.
func (m *Image) adopt() {
	for n := uint32(2); n <= m.pages; n++ {
		if m.owner[n] != 0 || m.special(n) || m.freePage[n] {
			continue
		}
		root := m.climb(n)
		if root == 0 {
			continue
		}
		m.owner[n] = root
		m.broken[root] = true
		if _, ok := m.tree(n); ok {
			m.trees[root] = append(m.trees[root], n)
		} else {
			m.Damaged++
		}
	}
}

// climb returns the root above a page, or 0 if the pointer map leads to no root.
func (m *Image) climb(n uint32) uint32 {
	for range 64 { // no tree is that high
		kind, parent := m.parent(n)
		switch {
		case kind == mapRoot:
			return n
		case kind != mapChild:
			return 0
		case parent <= m.pages && m.owner[parent] != 0:
			return m.owner[parent]
		}
		n = parent
	}
	return 0
}

// IsWhole reports whether every page of a tree can be read and is where its parent refers
// to it.
func (m *Image) IsWhole(root uint32) bool { return len(m.trees[root]) > 0 && !m.broken[root] }

// Roots returns the roots of all trees except the schema's, in the order of their first
// pages.
func (m *Image) Roots() (out []uint32) {
	for root := range m.trees {
		if root > 1 {
			out = append(out, root)
		}
	}
	slices.Sort(out)
	return out
}

// IsTable reports whether a tree stores rows by rowid, unlike indexes and tables without
// rowids.
func (m *Image) IsTable(root uint32) bool {
	for _, n := range m.trees[root] {
		if t, ok := m.tree(n); ok {
			return t.kind == tableLeaf || t.kind == tableInterior
		}
	}
	return false
}
