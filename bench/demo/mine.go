package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// showMine imports Claude Code's transcripts into the temporary store without changing them. It
// asks about the project with the most sessions. It returns false without transcripts.
func (d *demo) showMine(ctx context.Context, getenv func(string) string) (bool, error) {
	user, err := os.UserHomeDir()
	if err != nil {
		return false, err
	}
	folder := transcriptsFolder(getenv("CLAUDE_CONFIG_DIR"), user)
	if !hasTranscripts(folder) {
		d.blank()
		d.say("%s", d.bold("There are no transcripts in "+folder+", so invented sessions it is."))
		return false, nil
	}
	d.home.real = user
	d.heading("Your transcripts are read into a store in the temporary folder")
	d.line("%s", d.dim("$ cairn import "+d.home.short(folder)))
	if err := d.flush(); err != nil {
		return true, err
	}
	cmd := d.home.command(ctx, d.home.dir, "import", folder)
	cmd.Stdout, cmd.Stderr = d.w, os.Stderr
	if err := cmd.Run(); err != nil && (endsSoon(ctx) || cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1) {
		return true, fmt.Errorf("cairn import: %w", errors.Join(ctx.Err(), err)) // 1: some file could not be read
	}
	held, err := d.held(ctx)
	if err != nil {
		return true, err
	}
	d.say("\nThe store now holds %s.", held)
	p, ok, err := d.busiest(ctx)
	if err != nil {
		return true, err
	}
	if !ok {
		d.home.real = ""
		d.blank()
		d.say("%s", d.bold("Nothing in them could be used, so invented sessions it is."))
		return false, nil
	}
	if err := d.contextOf(ctx, p); err != nil {
		return true, err
	}
	return true, d.interview(ctx, p.folder(d.home.dir), plan{
		question: "Which test or build failed lately?",
		queries: []map[string]any{
			{"query": "test* OR build* OR error*", "obs_type": "command_error", "limit": 5, "orderBy": "blended"},
			{"query": "test* OR build* OR fix*", "limit": 5, "orderBy": "blended"},
		},
		serve: []string{"--project", p.ID},
	})
}

// transcriptsFolder returns the folder of Claude Code's transcripts.
func transcriptsFolder(configDir, home string) string {
	if configDir == "" {
		configDir = filepath.Join(home, ".claude")
	}
	return filepath.Join(configDir, "projects")
}

func hasTranscripts(folder string) bool {
	found, err := fs.Glob(os.DirFS(folder), "*/*.jsonl")
	return err == nil && len(found) > 0
}

// knownProject is a project in the store.
type knownProject struct {
	ID       string
	Root     string
	Sessions int
}

// folder returns the project's folder, or other if it no longer exists.
func (p knownProject) folder(other string) string {
	if info, err := os.Stat(p.Root); err == nil && info.IsDir() {
		return p.Root
	}
	return other
}

// busiest returns the project with the most sessions, or false without projects.
func (d *demo) busiest(ctx context.Context) (best knownProject, ok bool, err error) {
	out, err := d.home.output(ctx, d.home.dir, "project", "list", "--json")
	if err != nil {
		return best, false, err
	}
	var list []knownProject
	if err := json.Unmarshal(out, &list); err != nil {
		return best, false, fmt.Errorf("cairn project list: %w", err)
	}
	for _, p := range list {
		if p.Sessions > best.Sessions {
			best = p
		}
	}
	return best, best.ID != "", nil
}

func (d *demo) contextOf(ctx context.Context, p knownProject) error {
	d.heading("A new session in " + p.ID + " would get this context, byte for byte")
	began := time.Now()
	out, err := d.home.output(ctx, d.home.dir, "context", "--project", p.ID)
	if err != nil {
		return err
	}
	d.told(out, time.Since(began))
	return nil
}
