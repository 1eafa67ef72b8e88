package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cairn/internal/doctor"
)

// tree returns the modes, times and contents of all files and folders in the home.
func (h *home) tree() map[string]string {
	h.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(h.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode())
		if e.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %v %x", info.ModTime(), sha256.Sum256(data))
		}
		out[path] = text
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

// diagnosed runs doctor. Without --fix, doctor must change nothing.
func (h *home) diagnosed(args ...string) (d doctor.Diagnosis, code int) {
	h.t.Helper()
	before := h.tree()
	e := h.run(h.command(append([]string{"doctor", "--json"}, args...)...), nil)
	if err := json.Unmarshal([]byte(e.stdout), &d); err != nil {
		h.t.Fatalf("doctor: exit %d, %v: %s%s", e.code, err, e.stdout, e.stderr)
	}
	if d.OK != (e.code == 0) || e.code > 1 {
		h.t.Errorf("doctor: ok %v, exit %d", d.OK, e.code)
	}
	if len(args) > 0 && args[0] == "--fix" {
		return d, e.code
	}
	after := h.tree()
	for path, text := range after {
		if before[path] != text {
			h.t.Errorf("doctor has made or changed %s: %s, was %s", path, text, before[path])
		}
	}
	if len(after) != len(before) {
		h.t.Errorf("%d files and folders, %d before", len(after), len(before))
	}
	return d, e.code
}

// wants expects that a check has a state and that its texts contain all of the words.
func wants(t *testing.T, d doctor.Diagnosis, name string, state doctor.State, words ...string) {
	t.Helper()
	for _, c := range d.Checks {
		if c.Name != name {
			continue
		}
		if c.State == doctor.Problem && (c.Why == "" || c.Do == "") && !c.Fixed {
			t.Errorf("%s does not say why it matters and what to do: %+v", name, c)
		}
		said := true
		for _, w := range words {
			said = said && strings.Contains(c.What+c.Why+c.Do, w)
		}
		if c.State == state && said {
			return
		}
	}
	t.Errorf("no check %s is %s and says %q: %+v", name, state, words, d.Checks)
}

// ownTemp sets an empty temporary folder, so that doctor does not see the leftovers of other tests.
func (h *home) ownTemp() {
	h.t.Helper()
	dir := h.t.TempDir()
	h.vars["TMPDIR"], h.vars["TMP"], h.vars["TEMP"] = dir, dir, dir
}

func TestDoctorOfNothingChangesNothing(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.ownTemp()
	d, code := h.diagnosed()
	if code != 0 {
		t.Errorf("without agents and store: exit %d, %+v", code, d.Checks)
	}
	wants(t, d, "content", doctor.OK, "no store yet")
	wants(t, d, "harnesses", doctor.Unknown, "cairn init")
	wants(t, d, "serve", doctor.OK, "tools")
}

func TestDoctorIsAllGreenAfterInitAndAnEvent(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.ownTemp()
	if err := os.MkdirAll(filepath.Join(h.dir, ".claude"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, code := h.diagnosed()
	wants(t, d, "harnesses", doctor.Problem, "cairn init")
	if code != 1 {
		t.Errorf("an agent that is not wired: exit %d", code)
	}
	h.cairn("init")
	d, _ = h.diagnosed()
	wants(t, d, "claude.entries", doctor.OK, "connected")
	wants(t, d, "claude.events", doctor.Unknown, "new session")
	h.worked()
	d, code = h.diagnosed("--deep")
	for _, c := range d.Checks {
		if c.State != doctor.OK {
			t.Errorf("not green: %+v", c)
		}
	}
	wants(t, d, "claude.events", doctor.OK, time.Now().UTC().Format("2006-01-02"))
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	out := h.cairn("status")
	if !strings.Contains(out, "agents   claude") {
		t.Errorf("status: %s", out)
	}
	var status struct{ Harnesses []string }
	if err := json.Unmarshal([]byte(h.cairn("status", "--json")), &status); err != nil || len(status.Harnesses) != 1 || status.Harnesses[0] != "claude" {
		t.Errorf("status --json: %v %v", status, err)
	}
}

// TestDoctorLooksWithoutTouchingALogThatAKilledProcessLeft checks that doctor leaves this log
// unchanged. Every other command would checkpoint it.
func TestDoctorLooksWithoutTouchingALogThatAKilledProcessLeft(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.ownTemp()
	h.worked()
	c := h.dial("", nil)
	c.rows("search", fields{"query": "refund"})
	h.recorded(h.shell("log", "make refund"))
	if err := c.server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil && c.server.ProcessState == nil {
		t.Fatal("the server was not killed")
	}
	info, err := os.Stat(h.db() + "-wal")
	if err != nil || info.Size() == 0 {
		t.Skipf("nothing was left: %v", err)
	}
	for _, args := range [][]string{nil, {"--deep"}} {
		d, _ := h.diagnosed(args...)
		wants(t, d, "content", doctor.OK, "intact")
	}
	left, err := os.ReadDir(h.vars["TMPDIR"])
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
	h.check()
}

func TestDoctorRepairsRightsOnlyWithFix(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("rights are not looked at there")
	}
	h := newHome(t)
	h.ownTemp()
	h.worked()
	log := filepath.Join(h.dataDir(), "cairn.log")
	err := errors.Join(os.WriteFile(log, nil, 0o644), os.Chmod(log, 0o644), os.Chmod(h.db(), 0o640), os.Chmod(h.dataDir(), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	d, code := h.diagnosed()
	wants(t, d, "rights", doctor.Problem, "cairn.log is 644", "cairn.db is 640", ".cairn is 755", "--fix")
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	d, code = h.diagnosed("--fix")
	if code != 0 {
		t.Errorf("after the repair: exit %d, %+v", code, d.Checks)
	}
	for name, mode := range h.files() {
		if want := map[bool]string{true: "drwx------", false: "-rw-------"}[mode.IsDir()]; mode.String() != want {
			t.Errorf("%s is %v", name, mode)
		}
	}
	d, _ = h.diagnosed()
	wants(t, d, "rights", doctor.OK)
}

// TestDoctorNamesEachProblem creates one problem at a time.
func TestDoctorNamesEachProblem(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.ownTemp()
	h.worked()
	file := h.storeFile()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(h.dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}

	put(".cairn/config.toml", "x = = 1")
	d, _ := h.diagnosed()
	wants(t, d, "settings", doctor.Problem, "config.toml: line 1")
	put(".cairn/config.toml", "")

	put(".cairn/cairn.db-salvage-20260101T000000Z", "half")
	d, _ = h.diagnosed()
	wants(t, d, "leftovers", doctor.Problem, "cairn.db-salvage-2026")
	if err := os.Remove(h.db() + "-salvage-20260101T000000Z"); err != nil {
		t.Fatal(err)
	}

	db := h.raw()
	h.sqlite(db, `INSERT INTO set_aside (follower, seq, lane, error, attempts, since, next_try) VALUES ('archive', 3, '', 'no such folder', 4, 0, 0)`,
		`INSERT INTO followers (name, lane, position, updated_at, error, attempts, since) VALUES ('hub', '', 1, 0, 'not there', 3, 1)`)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d, _ = h.diagnosed()
	wants(t, d, "followers", doctor.Problem, "hub fails since 1970", "not there", "1 more")

	h.putStore(file)
	db = h.raw()
	h.sqlite(db, "UPDATE store_meta SET value = '4711' WHERE name = 'schema'", "PRAGMA user_version=4711")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d, _ = h.diagnosed()
	wants(t, d, "schema", doctor.Problem, "4711", "upgrade cairn")

	h.putStore(file)
	broken := bytes.Clone(file)
	clear(broken[len(broken)/2 : len(broken)/2+3*pageSize])
	h.putStore(broken)
	d, _ = h.diagnosed("--deep")
	wants(t, d, "content", doctor.Problem, "cairn doctor --salvage")
	h.putStore(file)

	put(".claude/projects/-work/aaaa.jsonl", `{"type":"user","sessionId":"aaaa","timestamp":"2026-01-02T10:00:00.000Z"}`+"\n")
	old := time.Now().Add(-5*24*time.Hour + time.Hour)
	if err := os.Chtimes(filepath.Join(h.dir, ".claude", "projects", "-work", "aaaa.jsonl"), old, old); err != nil {
		t.Fatal(err)
	}
	d, _ = h.diagnosed()
	wants(t, d, "transcripts", doctor.Problem, "1 sessions", "in 26 days", "30 days", "cairn import")
	put(".claude/settings.json", `{"cleanupPeriodDays": 7}`)
	d, _ = h.diagnosed()
	wants(t, d, "transcripts", doctor.Problem, "in 3 days", "7 days")
	h.cairn("import")
	d, _ = h.diagnosed()
	wants(t, d, "transcripts", doctor.OK, "all 1")
}

// TestDoctorFindsWhatIsWrongWithWiring changes parts of the settings after init has installed the
// hooks.
func TestDoctorFindsWhatIsWrongWithWiring(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := newHome(t)
	h.ownTemp()
	settings := filepath.Join(h.dir, ".claude", "settings.json")
	if err := os.MkdirAll(filepath.Dir(settings), 0o700); err != nil {
		t.Fatal(err)
	}
	h.cairn("init", "--no-import")
	text, err := os.ReadFile(settings)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.ReplaceAll(string(text), `"PostToolUse"`, `"PostToolUseX"`))
	d, code := h.diagnosed()
	wants(t, d, "claude.entries", doctor.Problem, "PostToolUse", "cairn init --claude")
	if code != 1 {
		t.Errorf("exit %d", code)
	}
	write(strings.ReplaceAll(string(text), `"timeout": 10`, `"timeout": 10000`))
	d, _ = h.diagnosed()
	wants(t, d, "claude.timeouts", doctor.Problem, "unit")
	write(`{"hooks": `)
	d, _ = h.diagnosed()
	wants(t, d, "claude.entries", doctor.Problem, "settings.json")

	// First a missing program, then one that is not a server.
	gone := filepath.Join(h.dir, "gone", "cairn")
	write(strings.ReplaceAll(string(text), h.program, gone))
	d, _ = h.diagnosed()
	wants(t, d, "claude.program", doctor.Problem, gone, "does not exist")
	if runtime.GOOS != "windows" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(gone), 0o700), os.WriteFile(gone, []byte("#!/bin/sh\necho no >&2\nexit 3\n"), 0o700)); err != nil {
			t.Fatal(err)
		}
		d, _ = h.diagnosed()
		wants(t, d, "serve", doctor.Problem, "exit status 3 no")
	}
}

// give sets a file's mode.
func (h *home) give(path string, mode os.FileMode) {
	h.t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		h.t.Fatal(err)
	}
}
