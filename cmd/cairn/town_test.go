package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/store/storetest"
)

// The classes of consistency (mail §1).
const (
	inStore   = "S" // database only; the follower refreshes documents that are already archived
	inArchive = "E" // database, and later the archive
	beside    = "F" // the code repository, not the database
)

// callToWrite is a mail tool that writes, with a call that is valid in a town.
type callToWrite struct {
	tool, class string
	kind        string // the kind of the changes that it appends
	args        fields
}

// town is a home whose agents have exchanged mail, all of it archived, so that every mail
// tool that writes has something to do. GreenLake and BlueDog work. RedFox waits for
// permission to write. QuietOwl will retire. StormyHawk has an old reservation.
type town struct {
	*home
	read, acked int64 // messages to BlueDog
	held, old   int64 // reservations of BlueDog and StormyHawk
}

// found prepares a town through a client of any server.
func found(h *home, c *client) *town {
	h.t.Helper()
	w := &town{home: h}
	for _, name := range []string{"StormyHawk", "GreenLake", "BlueDog", "RedFox", "QuietOwl"} {
		asked[agents.Registered](c, "register_agent", fields{"project_key": h.repo, "program": "codex", "model": "m1", "name": name})
	}
	w.old = w.reserves(c, "StormyHawk", "old/**")
	w.held = w.reserves(c, "BlueDog", "held/**")
	w.reserves(c, "BlueDog", "done/**")
	w.read, w.acked = w.posts(c, "to read", "BlueDog"), w.posts(c, "to acknowledge", "BlueDog")
	asked[map[string]any](c, "request_contact", fields{"project_key": h.repo, "from_agent": "RedFox", "to_agent": "BlueDog"})
	h.soon("a reservation is stale", func() bool {
		return strings.Contains(c.resource("file_reservations/"+filepath.Base(h.repo)+"?active_only=true"), `"stale":true`)
	})
	w.drain()
	return w
}

// prepared sets the settings of a town in a home: reservations are stale after one second.
func prepared(h *home) *home {
	h.t.Helper()
	if out, err := exec.CommandContext(h.t.Context(), "git", "init", "-q", h.repo).CombinedOutput(); err != nil {
		h.t.Skipf("no git: %v, %s", err, out)
	}
	h.vars["CAIRN_RESERVATIONS_INACTIVITY_SECONDS"], h.vars["CAIRN_RESERVATIONS_GRACE_SECONDS"] = "1", "1"
	h.vars["CAIRN_MAIL_CALL_TIMEOUT"] = "2s"
	return h
}

func (w *town) reserves(c *client, name string, path string) int64 {
	w.t.Helper()
	g := asked[reservations.GrantedReservations](c, "file_reservation_paths", fields{"project_key": w.repo, "agent_name": name, "paths": []string{path}})
	if len(g.Granted) != 1 {
		w.t.Fatalf("%s: %+v", path, g)
	}
	return g.Granted[0].ID
}

func (w *town) posts(c *client, subject, to string) int64 {
	w.t.Helper()
	sent := asked[messages.Sent](c, "send_message", fields{
		"project_key": w.repo, "sender_name": "GreenLake", "to": to, "subject": subject, "body_md": "Words.\n", "ack_required": true, "thread_id": "T-1",
	})
	return sent.Deliveries[0].Payload.ID
}

// writings returns calls of all mail tools that write. In this order no call prevents a
// later one.
func (w *town) writings() []callToWrite {
	in := func(f fields) fields {
		f["project_key"] = w.repo
		return f
	}
	me := fields{"program": "codex", "model": "m1"}
	with := func(f fields) fields {
		for k, v := range me {
			f[k] = v
		}
		return f
	}
	return []callToWrite{
		{"mark_message_read", inStore, mail.KindDelivery, in(fields{"agent_name": "BlueDog", "message_id": w.read})},
		{"acknowledge_message", inStore, mail.KindDelivery, in(fields{"agent_name": "BlueDog", "message_id": w.acked})},
		{"renew_file_reservations", inStore, mail.KindReservation, in(fields{"agent_name": "BlueDog", "file_reservation_ids": []int64{w.held}, "extend_seconds": 7200})},
		{"release_file_reservations", inStore, mail.KindReservation, in(fields{"agent_name": "BlueDog", "paths": []string{"done/**"}})},
		{"set_contact_policy", inStore, mail.KindAgent, in(fields{"agent_name": "GreenLake", "policy": "open"})},

		{"ensure_project", inArchive, mail.KindProject, fields{"human_key": filepath.Join(w.dir, "another")}},
		{"register_agent", inArchive, mail.KindAgent, in(with(fields{"name": "MistyPond"}))},
		{"create_agent_identity", inArchive, mail.KindAgent, in(with(fields{"name_hint": "SunnyHill"}))},
		{"send_message", inArchive, mail.KindMessage, in(fields{"sender_name": "GreenLake", "to": "BlueDog", "bcc": "QuietOwl", "subject": "sent", "body_md": "Words.\n"})},
		{"reply_message", inArchive, mail.KindMessage, in(fields{"sender_name": "BlueDog", "message_id": w.read, "body_md": "Yes.\n"})},
		{"file_reservation_paths", inArchive, mail.KindReservation, in(fields{"agent_name": "GreenLake", "paths": []string{"new/a.go", "new/b/**"}})},
		{"force_release_file_reservation", inArchive, mail.KindReservation, in(fields{"agent_name": "GreenLake", "file_reservation_id": w.old})},
		{"request_contact", inArchive, mail.KindContact, in(fields{"from_agent": "GreenLake", "to_agent": "RedFox"})},
		{"respond_contact", inArchive, mail.KindContact, in(fields{"to_agent": "BlueDog", "from_agent": "RedFox", "accept": true})},
		{"install_precommit_guard", beside, "", in(fields{"code_repo_path": w.repo})},

		// Tools that the seed's tables do not name.
		{"uninstall_precommit_guard", beside, "", fields{"code_repo_path": w.repo}},
		{"create_contact", inArchive, mail.KindContact, in(fields{"agent_name": "BlueDog", "contact": "GreenLake"})},
		{"macro_start_session", inArchive, mail.KindReservation, with(fields{"human_key": w.repo, "agent_name": "FrostyBear", "file_reservation_paths": []string{"start/**"}})},
		{"macro_prepare_thread", inArchive, mail.KindAgent, in(with(fields{"thread_id": "T-1", "agent_name": "GoldenWolf"}))},
		{"macro_file_reservation_cycle", inArchive, mail.KindReservation, in(fields{"agent_name": "BlueDog", "paths": []string{"cycle/**"}, "auto_release": true})},
		{"macro_contact_handshake", inArchive, mail.KindContact, in(fields{"requester": "RedFox", "target": "GreenLake", "auto_accept": true, "welcome_subject": "hello", "welcome_body": "Words.\n"})},
		{"retire_agent", inArchive, mail.KindAgent, in(fields{"agent_name": "QuietOwl"})},
	}
}

// failsWith expects that a call fails with a code, or that it succeeds if the code is "".
func (c *client) failsWith(code string, x callToWrite) {
	c.t.Helper()
	text, isError, err := c.answer(x.tool, x.args)
	var e fault.Envelope
	if err == nil && isError {
		err = json.Unmarshal([]byte(text), &e)
	}
	if err != nil || isError != (code != "") || e.Error.Code != code {
		c.t.Errorf("%s: %s, %v; want %q", x.tool, text, err, code)
	}
	if isError && e.Error.Details["recoverable"] != (code != mail.CodeCorruption) {
		c.t.Errorf("%s: %+v", x.tool, e.Error.Details)
	}
}

// drain archives everything.
func (h *home) drain() {
	h.t.Helper()
	h.cairn("archive", "sync")
}

// wantAgreement expects that store and archive agree and that Git reports no problem.
func (h *home) wantAgreement() {
	h.t.Helper()
	if e := h.run(h.command("reconcile", "--check"), nil); e.code != 0 {
		h.t.Errorf("reconcile --check: exit %d, %s%s", e.code, e.stdout, e.stderr)
	}
	repositories, err := filepath.Glob(filepath.Join(h.dataDir(), "archive", "*", ".git"))
	if err != nil || len(repositories) == 0 {
		h.t.Errorf("no archive: %v", err)
	}
	for _, repository := range repositories {
		if out, err := gitIn(filepath.Dir(repository), "fsck", "--strict", "--full", "--no-dangling"); err != nil || out != "" {
			h.t.Errorf("git fsck: %v, %s", err, out)
		}
	}
}

// gitIn runs plain git in a directory, as a human would.
func gitIn(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir),
		"GIT_AUTHOR_NAME=Ana", "GIT_AUTHOR_EMAIL=ana@ledger.example", "GIT_COMMITTER_NAME=Ana", "GIT_COMMITTER_EMAIL=ana@ledger.example")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// archived returns the current state of the archive: the commit of main, and every file of
// the working trees with a hash of its content.
func (w *town) archived() string {
	w.t.Helper()
	root := filepath.Join(w.dataDir(), "archive")
	var out strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			head, err := gitIn(filepath.Dir(path), "rev-parse", "main")
			fmt.Fprintln(&out, path, head)
			if err != nil {
				return err
			}
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		text, err := os.ReadFile(path)
		hash := sha256.Sum256(text)
		fmt.Fprintln(&out, path, hex.EncodeToString(hash[:8]))
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

// artefacts returns the files of a town's project in main.
func (w *town) artefacts() map[string]string {
	w.t.Helper()
	out, err := gitIn(filepath.Join(w.dataDir(), "archive", "shop"), "ls-tree", "-r", "main")
	if err != nil {
		w.t.Fatal(err, out)
	}
	all := map[string]string{}
	for line := range strings.Lines(out) {
		blob, path, _ := strings.Cut(strings.TrimSpace(line), "\t")
		all[path] = blob
	}
	return all
}

// dump returns every row of every table.
func (w *town) dump() string {
	w.t.Helper()
	db := storetest.OpenFile(w.db(), "mode=ro")
	var err error
	var out strings.Builder
	for _, name := range tables(w.t, db) {
		err = errors.Join(err, dumpTable(&out, db, name))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

// tables returns the tables that store rows: ordinary and shadow tables, but not virtual
// tables or views.
func tables(t *testing.T, db *sql.DB) (names []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM pragma_table_list
		WHERE schema = 'main' AND type IN ('table', 'shadow') AND name NOT LIKE 'sqlite_schema' ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil || len(names) < 30 {
		t.Fatal(names, err)
	}
	return names
}

func dumpTable(out io.Writer, db *sql.DB, name string) error {
	rows, err := db.Query(`SELECT * FROM "` + name + `"`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		text, err := rowText(rows)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %q\n", name, text)
	}
	return rows.Err()
}

// changed returns the number of changes of a kind.
func (w *town) changed(kind string) (n int) {
	w.t.Helper()
	if _, err := fmt.Sscan(w.rows(`SELECT count(*) FROM change_log WHERE kind = ?`, kind)[0], &n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// firstDifference returns the first place where two texts differ.
func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%.300s\nnow %.300s", x[i], y[i])
		}
	}
	return fmt.Sprintf("%d lines, now %d", len(x), len(y))
}
