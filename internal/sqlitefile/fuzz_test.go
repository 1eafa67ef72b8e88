package sqlitefile_test

import (
	"bytes"
	"testing"

	"cairn/internal/sqlitefile"
)

func file(b []byte) sqlitefile.File {
	return sqlitefile.File{ReaderAt: bytes.NewReader(b), Size: int64(len(b))}
}

// No input makes reading fail, run forever or use memory without limit.
func FuzzRead(f *testing.F) {
	f.Add([]byte{}, []byte{}) // the files of real databases are in testdata
	f.Fuzz(func(t *testing.T, db, wal []byte) {
		if len(db) > 1<<20 || len(wal) > 1<<20 {
			return
		}
		m := sqlitefile.Read(file(db), file(wal))
		rows := 0
		for _, root := range append(m.Roots(), 1) {
			m.Rows(root, func(sqlitefile.Row) bool { rows++; return true })
		}
		if rows > len(db)+len(wal) {
			t.Errorf("%d rows in %d bytes", rows, len(db)+len(wal))
		}
		m.Schema()
		if n, err := m.WriteTo(discard{}); err != nil || n > int64(len(db)+len(wal))+1<<17 && n > 1<<28 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
