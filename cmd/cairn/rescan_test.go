package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// TestRescanTakesOldTextOffTheDisk adds a pattern and applies it to text that is already
// stored.
func TestRescanTakesOldTextOffTheDisk(t *testing.T) {
	t.Parallel()
	plainAndEncrypted(t, rescan)
}

func rescan(t *testing.T, encrypt func(*home)) {
	p := newPurgeHome(t)
	encrypt(p.home)
	secret := p.gone.words()
	p.settle(inventedWords + fmt.Sprintf("extra_patterns = ['(?i)(%s)']\n", strings.Join(secret, "|")))
	settings := filepath.Join(p.dataDir(), "config.toml")
	type report struct {
		Rescan struct {
			Rows, Sessions int
			ByType         map[string]int `json:"by_type"`
			Rules          map[string]int
		}
	}
	sweep := func(args ...string) (r report) {
		text := p.cairn(append([]string{"sweep", "--rescan", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	dry := sweep("--dry-run")
	if err := os.Rename(settings, filepath.Join(p.dir, "config.toml")); err != nil { // it contains the words
		t.Fatal(err)
	}
	p.wantOnDisk(secret)
	if err := os.Rename(filepath.Join(p.dir, "config.toml"), settings); err != nil {
		t.Fatal(err)
	}
	done := sweep()
	if !reflect.DeepEqual(dry, done) || done.Rescan.Rows != 10 || done.Rescan.ByType["command_error"] != 1 ||
		done.Rescan.Sessions != 1 || done.Rescan.Rules["extra_pattern_1"] < len(secret) {
		t.Errorf("dry %+v, done %+v", dry.Rescan, done.Rescan)
	}
	if err := os.Rename(settings, filepath.Join(p.dir, "config.toml")); err != nil {
		t.Fatal(err)
	}
	p.wantGone(secret)
	p.wantOnDisk(p.kept.words())
	p.check()
	if err := os.Rename(filepath.Join(p.dir, "config.toml"), settings); err != nil {
		t.Fatal(err)
	}
	if again := sweep().Rescan; again.Rows != 0 || again.Sessions != 0 || len(again.Rules) != 0 {
		t.Errorf("a second rescan finds %+v", again)
	}
	p.wantRows(`SELECT path_key, metadata ->> '$.redacted' FROM observations WHERE session_id = 'gone' AND obs_type = 'file_edit'`,
		"[REDACTED]/[REDACTED].go|1")
	if hits := p.cairn("search", "redacted", "--ids"); strings.Count(hits, "\n") != 10 {
		t.Errorf("redacted rows are not found by what they now say: %q", hits)
	}
}
