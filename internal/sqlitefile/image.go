package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"io"
)

// magic begins every SQLite database file.
const magic = "SQLite format 3\x00"

// Offsets in the header of page 1.
const (
	headerSize    = 100
	atPageSize    = 16
	atReserved    = 20
	atFreeTrunk   = 32
	atLargestRoot = 52
	atUserVersion = 60
)

// lockByte is the offset of SQLite's locks. The page that contains it holds no data.
const lockByte = 1 << 30

// defaultPageSize is assumed if no header contains the page size.
const defaultPageSize = 4096

// File is a file of a database: a reader and the size in bytes. A missing file is the
// zero value.
type File struct {
	io.ReaderAt
	Size int64
}

// Image is a database as stored in its file and in the committed part of its write-ahead
// log.
type Image struct {
	db, wal  File
	size     int              // of a page
	usable   int              // size without the bytes reserved at its end
	pages    uint32           // in the database
	frames   map[uint32]int64 // page → position of its newest content in the log
	patched  map[int64][]byte // position in the log → the page there, with a flipped bit corrected
	Head     Head
	Damaged  int      // pages of trees that cannot be read
	owner    []uint32 // page → root of its tree, 0 for none
	trees    map[uint32][]uint32
	broken   map[uint32]bool   // roots of trees of which a page cannot be read, or has lost its parent
	mapped   bool              // there is a pointer map
	maps     map[uint32][]byte // its pages as read, nil for a page that is invalid
	freePage map[uint32]bool
}

// Read reads the structure of a database and of its write-ahead log. Both may be damaged,
// truncated or missing. It uses the same part of the log as SQLite: up to the last commit
// before the first frame that does not verify.
func Read(db, wal File) *Image {
	m, logPages := begin(db, wal)
	m.pages = uint32(min(db.Size/int64(m.size), 1<<32-2))
	for n := range m.frames {
		m.pages = max(m.pages, n)
	}
	if logPages > 0 {
		m.pages = min(m.pages, logPages)
	}
	m.owner = make([]uint32, m.pages+1)
	m.mapped = m.looksMapped()
	m.findFree()
	m.claim()
	return m
}

// Head contains the fields of the header that identify a file.
type Head struct {
	Found   bool // the file begins with SQLite's magic string
	Version int  // user_version, 0 without a header

	// LogCorrected is the number of log frames with a flipped bit at or before a commit.
	// SQLite ignores the log from the first such frame on.
	LogCorrected int
}

// ReadHead reads only the header, from the log if the log has its newest state.
func ReadHead(db, wal File) Head {
	m, _ := begin(db, wal)
	return m.Head
}

// begin reads the log and the header. pages is the size according to the log, or 0 if the
// log has no commit.
func begin(db, wal File) (m *Image, pages uint32) {
	m = &Image{
		db: db, wal: wal, frames: map[uint32]int64{}, patched: map[int64][]byte{},
		trees: map[uint32][]uint32{}, broken: map[uint32]bool{}, maps: map[uint32][]byte{}, freePage: map[uint32]bool{},
	}
	pages = m.readLog()
	m.readHeader()
	return m, pages
}

// readHeader reads the beginning of page 1, from the log if the log contains the page.
func (m *Image) readHeader() {
	head := make([]byte, headerSize)
	at, from := int64(0), m.db
	if frame, ok := m.frames[1]; ok {
		at, from = frame, m.wal
	}
	if patched := m.patched[at]; patched != nil { // the file's page is at position 0, which is never patched
		from, at = File{bytes.NewReader(patched), int64(len(patched))}, 0
	}
	if from.ReaderAt != nil && readFull(from, head, at) && bytes.HasPrefix(head, []byte(magic)) {
		m.Head.Found, m.Head.Version = true, int(int32(binary.BigEndian.Uint32(head[atUserVersion:])))
		if size := pageSize(uint32(binary.BigEndian.Uint16(head[atPageSize:]))); m.size == 0 {
			m.size = size
		}
		m.usable = m.size - int(head[atReserved])
	}
	if m.size == 0 {
		m.size = defaultPageSize
	}
	if m.usable < 480 || m.usable > m.size { // SQLite requires at least 480
		m.usable = m.size
	}
}

// pageSize returns the page size in a header, or 0 if it is invalid.
func pageSize(n uint32) int {
	if n == 1 {
		n = 1 << 16
	}
	if n < 512 || n > 1<<16 || n&(n-1) != 0 {
		return 0
	}
	return int(n)
}

func readFull(f File, into []byte, at int64) bool {
	if f.ReaderAt == nil || at < 0 || at+int64(len(into)) > f.Size {
		return false
	}
	n, err := f.ReadAt(into, at)
	return n == len(into) && (err == nil || err == io.EOF)
}

// page returns the content of a page, or nil if it cannot be read.
func (m *Image) page(n uint32) []byte {
	if n < 1 || n > m.pages {
		return nil
	}
	data := make([]byte, m.size)
	if at, ok := m.frames[n]; ok {
		if patched := m.patched[at]; patched != nil {
			return bytes.Clone(patched)
		}
		if readFull(m.wal, data, at) {
			return data
		}
		return nil
	}
	if !readFull(m.db, data, int64(n-1)*int64(m.size)) {
		return nil
	}
	return data
}

// WriteTo writes the database as one file without a log. Pages that cannot be read are
// written as zeros.
func (m *Image) WriteTo(w io.Writer) (written int64, err error) {
	blank := make([]byte, m.size)
	for n := uint32(1); n <= m.pages; n++ {
		data := m.page(n)
		if data == nil {
			data = blank
		}
		k, err := w.Write(data)
		written += int64(k)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
