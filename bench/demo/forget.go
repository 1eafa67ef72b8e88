package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The session that is purged, and words that only it contains.
const (
	purged      = "0c9b7e34-5a2d-47f1-b6c8-9d14e3a07f23"
	purgedWords = "idempotent requests"
)

// forget purges a session and searches every file of the data directory for its words. It
// returns an error if they are missing before or present afterwards.
func (d *demo) forget(ctx context.Context) error {
	d.heading("That session is forgotten for good")
	before, err := filesWith(d.home.data, purgedWords)
	if err != nil {
		return err
	}
	if len(before) == 0 {
		return fmt.Errorf("no file holds %q before the purge, so that its absence would prove nothing", purgedWords)
	}
	for _, args := range [][]string{{"purge", "--session", purged}, {"purge", "--session", purged, "--confirm"}} {
		if err := d.shown(ctx, d.home, args...); err != nil {
			return err
		}
	}
	after, err := filesWith(d.home.data, purgedWords)
	if err != nil {
		return err
	}
	if len(after) > 0 {
		return fmt.Errorf("%q is still in %s after the purge: please report this", purgedWords, strings.Join(after, ", "))
	}
	d.say("Before, “%s” stood in %s; now no file in %s holds it, and no import brings it back.",
		purgedWords, strings.Join(before, ", "), d.home.short(d.home.data))
	return nil
}

// shown runs cairn in a home and prints the command and its output.
func (d *demo) shown(ctx context.Context, h *home, args ...string) error {
	out, err := h.output(ctx, h.dir, args...)
	if err != nil {
		return err
	}
	d.line("$ cairn %s", strings.Join(args, " "))
	for line := range strings.Lines(h.short(string(out))) {
		d.line("  %s", printable(strings.TrimSuffix(line, "\n")))
	}
	d.blank()
	return nil
}

// filesWith lists the files below dir that contain a text, ignoring case.
func filesWith(dir, text string) (found []string, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if bytes.Contains(bytes.ToLower(data), []byte(strings.ToLower(text))) {
			found = append(found, e.Name())
		}
		return err
	})
	return found, err
}
