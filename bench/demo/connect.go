package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// past is a generated agent's transcript, three days old.
//
//go:embed past/9d2c61f0-4c1e-4e55-8a6b-0c5d7be1a402.jsonl
var past []byte

// Settings of the invented user before cairn is installed.
const (
	ownClaude = "{\n  // only what is safe\n  \"permissions\": {\"allow\": [\"Bash(go test:*)\"]}\n}\n"
	ownCodex  = "model = \"gpt-5-codex\" # the usual\n"
)

// connect shows init and uninstall in a second temporary home with agents that were used
// before. It returns an error if the settings afterwards differ from those before.
func (d *demo) connect(ctx context.Context) error {
	d.heading("Another invented home, with Claude Code and Codex in it, is connected")
	h, own, err := d.home.guest(ctx)
	if err != nil {
		return err
	}
	if err := d.shown(ctx, h, "init"); err != nil {
		return err
	}
	if err := d.shown(ctx, h, "uninstall"); err != nil {
		return err
	}
	for path, text := range own {
		now, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, text) {
			return fmt.Errorf("%s is not what it was before init: please report this", h.short(path))
		}
	}
	d.say("Both settings files are what they were, byte for byte.")
	return nil
}

// guest creates a home below h with an old session and agents' settings, which it returns by
// path.
func (h *home) guest(ctx context.Context) (g *home, own map[string][]byte, err error) {
	dir := filepath.Join(h.dir, "guest")
	garden := filepath.Join(dir, "garden")
	g = &home{program: h.program, dir: dir, data: filepath.Join(dir, ".cairn"), repos: map[string]string{"garden": garden}}
	values := map[string]string{"garden": garden}
	began := time.Now().Add(-3 * 24 * time.Hour)
	for i := range 8 {
		values[fmt.Sprintf("t%d", i)] = began.Add(time.Duration(i) * 40 * time.Second).UTC().Format(time.RFC3339)
	}
	transcript, err := fill(past, values)
	if err != nil {
		return nil, nil, err
	}
	own = map[string][]byte{
		filepath.Join(dir, ".claude", "settings.json"): []byte(ownClaude),
		filepath.Join(dir, ".codex", "config.toml"):    []byte(ownCodex),
	}
	err = errors.Join(
		put(filepath.Join(dir, ".claude", "projects", "garden", "9d2c61f0-4c1e-4e55-8a6b-0c5d7be1a402.jsonl"), transcript),
		makeRepository(ctx, garden, h.env()),
	)
	for path, text := range own {
		err = errors.Join(err, put(path, text))
	}
	return g, own, err
}

func put(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
