package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"cairn/internal/store"
)

// mailLedger contains the writes that were acknowledged to callers.
type mailLedger struct {
	messages               []ledgerMessage
	acknowledged, reserved []int64 // ids of messages and of reservations
}

type ledgerMessage struct {
	id      int64
	subject string
}

func (l *mailLedger) add(more mailLedger) {
	l.messages = append(l.messages, more.messages...)
	l.acknowledged = append(l.acknowledged, more.acknowledged...)
	l.reserved = append(l.reserved, more.reserved...)
}

func (l *mailLedger) size() int { return len(l.messages) + len(l.acknowledged) + len(l.reserved) }

const (
	selectLedgerMessages     = `SELECT id, subject FROM mail_messages`
	selectLedgerAcknowledged = `SELECT message_id, '' FROM mail_recipients WHERE ack_ts IS NOT NULL`
	selectLedgerReserved     = `SELECT id, '' FROM mail_reservations`
)

// lost returns the number of acknowledged rows that are missing or different in the store. It
// also returns the number of ids that were assigned twice.
func (l *mailLedger) lost(ctx context.Context, s *store.Store) (lost, twice int, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		stored := func(query string) (map[int64]string, error) {
			found := map[int64]string{}
			return found, tx.Each(ctx, func(rows *sql.Rows) error {
				var id int64
				var text string
				err := rows.Scan(&id, &text)
				found[id] = text
				return err
			}, query)
		}
		messages, err := stored(selectLedgerMessages)
		if err != nil {
			return err
		}
		given := map[int64]bool{}
		for _, m := range l.messages {
			if given[m.id] {
				twice++
			}
			given[m.id] = true
			if messages[m.id] != m.subject {
				lost++
			}
		}
		for query, ids := range map[string][]int64{selectLedgerAcknowledged: l.acknowledged, selectLedgerReserved: l.reserved} {
			rows, err := stored(query)
			if err != nil {
				return err
			}
			given := map[int64]bool{}
			for _, id := range ids {
				if given[id] {
					twice++
				}
				given[id] = true
				if _, ok := rows[id]; !ok {
					lost++
				}
			}
		}
		return nil
	})
	return lost, twice, err
}

// prove compares the acknowledged writes with the store, and the store with its archives, after
// the server has stopped. Any difference is an error, returned after the table is printed.
func (b *bench) prove(ctx context.Context, m *mailServer, l *mailLedger) error {
	t := newTable("mail", "what was acknowledged, after the server has stopped", "found", "s")
	began := time.Now()
	s, err := store.Open(ctx, store.Config{Path: filepath.Join(m.home, "cairn.db"), ReadOnly: true})
	if err != nil {
		return err
	}
	lost, twice, err := l.lost(ctx, s)
	findings, checkErr := s.Check(ctx)
	if err := errors.Join(err, checkErr, s.Close()); err != nil {
		return err
	}
	none := func(name string, n int) {
		t.add(name, n, time.Since(began).Seconds()).target("0", n == 0)
		if n > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d", name, n))
		}
		began = time.Now()
	}
	none(fmt.Sprintf("of %s acknowledged writes lost or changed", grouped(l.size())), lost)
	none("numbers given out twice", twice)
	none("findings of the store's own check", len(findings))
	if _, err := m.run(ctx, "archive", "sync"); err != nil {
		return err
	}
	t.add("archive caught up", nil, time.Since(began).Seconds())
	began = time.Now()
	diverged, messages, err2 := m.reconciled(ctx)
	if err2 != nil {
		return err2
	}
	none(fmt.Sprintf("divergences of %s messages from the archive (reconcile --check)", grouped(messages)), diverged)
	bad, err2 := fsck(ctx, filepath.Join(m.home, "archive"))
	if err2 != nil {
		return err2
	}
	none("repositories that git fsck complains of", bad)
	said, err2 := m.warnings()
	if len(said) > 0 {
		t.note("the server said %d times that something was amiss, first %.300s", len(said), said[0])
	}
	return errors.Join(b.publish(t), err, err2)
}

// reconciled returns the number of differences found by `cairn reconcile --check`, and the
// number of messages compared.
func (m *mailServer) reconciled(ctx context.Context) (amiss, messages int, err error) {
	said, err := m.run(ctx, "reconcile", "--check", "--json")
	var found struct {
		Consistent                   bool
		DBMessages                   int `json:"db_messages"`
		Missing, Mismatched, Orphans []json.RawMessage
		DuplicateIDs                 []json.RawMessage `json:"duplicate_ids"`
		SetAside                     []json.RawMessage `json:"set_aside"`
		Uncommitted, Pending         int
	}
	if jsonErr := json.Unmarshal(said, &found); jsonErr != nil {
		return 0, 0, errors.Join(err, jsonErr)
	}
	amiss = len(found.Missing) + len(found.Mismatched) + len(found.Orphans) + len(found.DuplicateIDs) + len(found.SetAside) +
		found.Uncommitted + found.Pending
	if !found.Consistent {
		amiss = max(amiss, 1)
	}
	return amiss, found.DBMessages, nil
}

// fsck runs git fsck on every repository of an archive and returns the number of repositories
// with faults.
func fsck(ctx context.Context, dir string) (bad int, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		cmd := exec.CommandContext(ctx, "git", "-C", filepath.Join(dir, e.Name()), "fsck", "--full", "--strict", "--no-dangling")
		if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
			bad++
		}
	}
	return bad, err
}
