package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"cairn/internal/sqlitefile"
	"cairn/internal/store/disk"
)

// Check reads the whole store and reports damage. It runs SQLite's integrity check and
// checks foreign keys, the change log's numbers and hash chain per device, the documents'
// hashes, and followers ahead of the log. An intact store has no findings. It changes
// nothing.
//
// It returns the errors of Read. One of them is damage that prevents SQLite from reading
// at all (CodeCorrupt).
func (s *Store) Check(ctx context.Context) (findings []string, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		for _, check := range []func(context.Context, *Tx) ([]string, error){
			checkIntegrity, checkForeignKeys, checkLog, checkFollowers,
		} {
			found, err := check(ctx, tx)
			if err != nil {
				return err
			}
			findings = append(findings, found...)
		}
		return nil
	})
	return findings, err
}

// LogDamage reports flipped bits in the write-ahead log of the store at path; SQLite
// ignores the log from there on. It reports nothing for an intact or missing log, nor for
// that of an encrypted store, whose checksums are encrypted.
func LogDamage(path string, key []byte) (found []string, err error) {
	if key != nil {
		return nil, nil
	}
	for range 2 { // another process's write is complete at the second check
		f, err := os.Open(disk.Resolve(path) + "-wal")
		if errors.Is(err, os.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		n := 0
		if err == nil {
			n = sqlitefile.ReadHead(sqlitefile.File{}, sqlitefile.File{ReaderAt: f, Size: info.Size()}).LogCorrected
		}
		if err := errors.Join(err, f.Close()); err != nil || n == 0 {
			return nil, err
		}
		found = []string{"the write-ahead log has a flipped bit, and SQLite does not read later commits"}
	}
	return found, nil
}

const selectIndexes = `SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE % USING fts5 %'`

// refreshIndexes makes FTS5 reload the data that this connection caches of each index.
// PRAGMA integrity_check does not notice changes of an index by another connection, and
// then reports damage that does not exist.
func refreshIndexes(ctx context.Context, tx *Tx) error {
	names, err := tx.Texts(ctx, selectIndexes)
	defer func(lost error) { tx.lost = lost }(tx.lost)
	for _, name := range names {
		// The check itself reports an index that cannot be read.
		_ = tx.Each(ctx, func(*sql.Rows) error { return nil }, fmt.Sprintf(`SELECT rowid FROM %[1]q WHERE %[1]q MATCH '"a"' LIMIT 1`, name))
	}
	return err
}

func checkIntegrity(ctx context.Context, tx *Tx) (found []string, err error) {
	if err := refreshIndexes(ctx, tx); err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var line string
		err := r.Scan(&line)
		if line != "ok" {
			found = append(found, "sqlite: "+line)
		}
		return err
	}, `PRAGMA integrity_check`)
	return found, err
}

func checkForeignKeys(ctx context.Context, tx *Tx) (found []string, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var table, parent string
		var row sql.NullInt64
		var n int
		err := r.Scan(&table, &row, &parent, &n)
		found = append(found, fmt.Sprintf("row %d of %s refers to a missing row of %s", row.Int64, table, parent))
		return err
	}, `PRAGMA foreign_key_check`)
	return found, err
}

// checkLog checks every device's chain in the order of its numbers. A trimmed log starts
// at its first change. Gaps noted by a salvage are allowed.
func checkLog(ctx context.Context, tx *Tx) (found []string, err error) {
	noted := map[string]bool{}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var name string
		err := r.Scan(&name)
		noted[name] = true
		return err
	}, `SELECT name FROM store_meta WHERE name LIKE 'gap/%'`)
	if err != nil {
		return nil, err
	}
	err = EachBreak(ctx, tx, func(b ChainBreak) {
		if b.Document || !noted[GapName(b.Device, b.DeviceSeq)] {
			found = append(found, b.Message)
		}
	})
	return found, err
}

// ChainBreak is damage at one change of the log.
type ChainBreak struct {
	Seq       int64
	Device    string
	DeviceSeq int64
	Document  bool // the document was altered; else the chain is broken before the change
	Message   string
}

// EachBreak calls found for all damage in the log.
func EachBreak(ctx context.Context, tx *Tx, found func(ChainBreak)) error {
	type end struct {
		seq  int64
		hash []byte
	}
	ends := map[string]end{}
	after := int64(0)
	for {
		changes, err := tx.Changes(ctx, after, 1000)
		if err != nil || len(changes) == 0 {
			return err
		}
		for i := range changes {
			c := &changes[i]
			last, known := ends[c.Device]
			why := ""
			switch {
			case known && c.DeviceSeq != last.seq+1:
				why = fmt.Sprintf("change %d: number %d of its device follows %d", c.Seq, c.DeviceSeq, last.seq)
			case known && !bytes.Equal(c.PrevHash, last.hash):
				why = fmt.Sprintf("change %d does not continue its device's hash chain", c.Seq)
			case !known && c.DeviceSeq == 1 && !bytes.Equal(c.PrevHash, make([]byte, sha256.Size)):
				why = fmt.Sprintf("change %d is a device's first but refers to an earlier one", c.Seq)
			}
			if why != "" {
				found(ChainBreak{c.Seq, c.Device, c.DeviceSeq, false, why})
			}
			if sum := sha256.Sum256(c.Doc); c.Doc != nil && !bytes.Equal(c.DocHash, sum[:]) {
				found(ChainBreak{c.Seq, c.Device, c.DeviceSeq, true, fmt.Sprintf("change %d: its document was altered", c.Seq)})
			}
			ends[c.Device] = end{c.DeviceSeq, c.Hash()}
		}
		after = changes[len(changes)-1].Seq
	}
}

func checkFollowers(ctx context.Context, tx *Tx) (found []string, err error) {
	head, err := tx.Head(ctx)
	if err != nil {
		return nil, err
	}
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var name string
		var position int64
		err := r.Scan(&name, &position)
		if position > head {
			found = append(found, fmt.Sprintf("follower %s is at %d, beyond the end of the log at %d", name, position, head))
		}
		return err
	}, `SELECT name, position FROM followers`)
	return found, err
}

// GapName returns the name of the note in store_meta that a device's chain may be broken
// before the change with that number.
func GapName(device string, deviceSeq int64) string {
	return fmt.Sprintf("gap/%s/%d", device, deviceSeq)
}
