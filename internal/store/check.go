package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
)

// Check reads the whole store and reports what is wrong with it: SQLite's own
// integrity check, foreign keys, the change log's numbering and hash chain per
// device, the documents' hashes, and followers ahead of the log. A sound store
// gives no findings. It changes nothing.
//
// Errors are those of Read; damage that keeps SQLite from reading at all is one
// of them (CodeCorrupt).
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

func checkIntegrity(ctx context.Context, tx *Tx) (found []string, err error) {
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

// checkLog follows every device's chain in the order of its numbers. A log
// whose beginning was trimmed starts at its first change.
func checkLog(ctx context.Context, tx *Tx) (found []string, err error) {
	type end struct {
		seq  int64
		hash []byte
	}
	ends := map[string]end{}
	after := int64(0)
	for {
		changes, err := tx.Changes(ctx, after, 1000)
		if err != nil || len(changes) == 0 {
			return found, err
		}
		for i := range changes {
			c := &changes[i]
			last, known := ends[c.Device]
			switch {
			case known && c.DeviceSeq != last.seq+1:
				found = append(found, fmt.Sprintf("change %d: number %d of its device follows %d", c.Seq, c.DeviceSeq, last.seq))
			case known && !bytes.Equal(c.PrevHash, last.hash):
				found = append(found, fmt.Sprintf("change %d does not continue its device's hash chain", c.Seq))
			case !known && c.DeviceSeq == 1 && !bytes.Equal(c.PrevHash, make([]byte, sha256.Size)):
				found = append(found, fmt.Sprintf("change %d is a device's first, yet names one before it", c.Seq))
			}
			if sum := sha256.Sum256(c.Doc); c.Doc != nil && !bytes.Equal(c.DocHash, sum[:]) {
				found = append(found, fmt.Sprintf("change %d: its document was altered", c.Seq))
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
			found = append(found, fmt.Sprintf("follower %s stands at %d, behind the log's end %d", name, position, head))
		}
		return err
	}, `SELECT name, position FROM followers`)
	return found, err
}
