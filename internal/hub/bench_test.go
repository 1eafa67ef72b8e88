package hub_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cairn/internal/hub"
	"cairn/internal/replica"
)

const benchBatch = 500

// BenchmarkPush measures entries per second through the whole stack: one device with four
// concurrent requests of 500 entries each, of 20 memories. That is hub.batch and the limit per
// credential of memories §10.3. The bare numbers for comparison are the same bytes upserted by
// the same statement without a hub. Target: ≥ 5,000 entries/s.
func BenchmarkPush(b *testing.B) {
	for _, memories := range []int{1, 10, 100} {
		name := fmt.Sprintf("memories=%d", memories)
		b.Run("sqlite/"+name, func(b *testing.B) { benchPush(b, "sqlite:"+filepath.Join(b.TempDir(), "hub.db"), memories) })
		b.Run("postgres/"+name, func(b *testing.B) { benchPush(b, postgres.Database(b), memories) })
	}
	b.Run("bare/postgres", benchBare)
	b.Run("bare/postgres/row by row", benchRows)
}

func entryText() string { return strings.Repeat("what was said in one turn. ", 10) }

func benchPush(b *testing.B, address string, memories int) {
	d := open(b, address).device("new", hub.LevelAdmin)
	ids := make([][4]string, memories) // a device sends one request at a time for each stream
	for i := range ids {
		ids[i] = [4]string{d.memory(), d.memory(), d.memory(), d.memory()}
	}
	n := 0
	for b.Loop() {
		n++
		var all sync.WaitGroup
		var taken atomic.Int64
		for j := range 4 {
			req := replica.PushRequest{DeviceID: "bench"}
			for i := range benchBatch {
				it := entryPut(ids[i%memories][j], entryText())
				it.Seq = int64(i + 1)
				req.Items = append(req.Items, it)
			}
			all.Go(func() {
				results, err := tryPush(d.url, d.token, req)
				if err != nil {
					b.Error(err)
				}
				for _, r := range results {
					if r.Status == 201 {
						taken.Add(1)
					}
				}
			})
		}
		all.Wait()
		if taken.Load() != 4*benchBatch {
			b.Fatalf("%d of %d were taken", taken.Load(), 4*benchBatch)
		}
	}
	b.ReportMetric(float64(n*4*benchBatch)/b.Elapsed().Seconds(), "entries/s")
}

// bareTable is one table with the columns of a log and a primary key.
const bareTable = `CREATE TABLE bare (stream TEXT, seq BIGINT, key TEXT, doc TEXT, PRIMARY KEY (stream, seq), UNIQUE (stream, key))`

func bare(b *testing.B) *sql.DB {
	b.Helper()
	db := behind(b, postgres.Database(b))
	run(b, db, bareTable)
	return db
}

func benchBare(b *testing.B) {
	db := bare(b)
	n := int64(0)
	for b.Loop() {
		seqs, keys, docs := make([]int64, benchBatch), make([]string, benchBatch), make([]string, benchBatch)
		for i := range seqs {
			n++
			seqs[i], keys[i], docs[i] = n, newKey(), entryText()
		}
		if _, err := db.ExecContext(context.Background(), `INSERT INTO bare SELECT 'one', * FROM unnest($1::bigint[], $2::text[], $3::text[])
ON CONFLICT DO NOTHING`, seqs, keys, docs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
}

// benchRows measures the hub without its bulk statements.
func benchRows(b *testing.B) {
	db := bare(b)
	n := int64(0)
	for b.Loop() {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			b.Fatal(err)
		}
		for range benchBatch {
			n++
			if _, err := tx.ExecContext(context.Background(), `INSERT INTO bare VALUES ('one', $1, $2, $3) ON CONFLICT DO NOTHING`, n, newKey(), entryText()); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "entries/s")
}
