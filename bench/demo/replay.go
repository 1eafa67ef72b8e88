package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// replay sends every payload of the generated sessions to a separate hook process and reports
// the durations.
func (d *demo) replay(ctx context.Context, key string) error {
	sessions, err := readRecordings()
	if err != nil {
		return err
	}
	d.heading("Five invented sessions go through the hook")
	values := map[string]string{"home": d.home.dir, "stripe_key": key}
	for name, dir := range d.home.repos {
		values[name] = dir
	}
	var took []time.Duration
	for _, r := range sessions {
		t, err := d.replaySession(ctx, r, values)
		if err != nil {
			return fmt.Errorf("%s: %w", r.file, err)
		}
		took = append(took, t...)
	}
	held, err := d.held(ctx)
	if err != nil {
		return err
	}
	slices.Sort(took)
	d.blank()
	d.say("%d hook calls, a process each, took %s in the median and %s at worst, from process start to exit. The store now holds %s.",
		len(took), milliseconds(took[len(took)/2]), milliseconds(took[len(took)-1]), held)
	return nil
}

func (d *demo) replaySession(ctx context.Context, r recording, values map[string]string) ([]time.Duration, error) {
	var took []time.Duration
	var asked string
	var told []string // tokens, at the start and after each compaction
	for i, line := range r.payloads {
		body, err := fill(line, values)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		p, out, t, err := d.send(ctx, body)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		took = append(took, t)
		d.keySent += bytes.Count(body, []byte(values["stripe_key"]))
		if asked == "" {
			asked = p.Prompt
		}
		if p.Event == "SessionStart" {
			told = append(told, strconv.Itoa(tokens(out)))
		}
	}
	d.line("  %-8s%3d events, context %7s tokens  %s", r.repo, len(r.payloads), strings.Join(told, "+"), d.dim(quote(asked, 56)))
	return took, d.flush()
}

// send runs the hook once, in the payload's folder.
func (d *demo) send(ctx context.Context, body []byte) (p payload, out []byte, took time.Duration, err error) {
	if err := json.Unmarshal(body, &p); err != nil {
		return p, nil, 0, err
	}
	if err := os.MkdirAll(p.Cwd, 0o700); err != nil {
		return p, nil, 0, err
	}
	cmd := d.home.command(ctx, p.Cwd, "record", "--from", "claude")
	cmd.Stdin = bytes.NewReader(body)
	out, took, err = d.home.run(ctx, cmd)
	return p, out, took, err
}

// held describes the content of the store.
func (d *demo) held(ctx context.Context) (string, error) {
	out, err := d.home.output(ctx, d.home.dir, "status", "--json")
	if err != nil {
		return "", err
	}
	var s struct {
		Bytes  int64
		Counts struct{ Observations, Sessions, Projects int }
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return "", fmt.Errorf("cairn status: %w", err)
	}
	n := s.Counts
	return fmt.Sprintf("%d observations of %d sessions in %d projects (%.1f MB)",
		n.Observations, n.Sessions, n.Projects, float64(s.Bytes)/1e6), nil
}

// newSession starts another session and shows its injected context.
func (d *demo) newSession(ctx context.Context) error {
	d.heading("A new session starts in shop. The agent gets this context, byte for byte")
	body, err := json.Marshal(map[string]string{
		"session_id": "91c4e7b2-08fd-4f5e-b1a6-3e7d20c9a815", "cwd": d.home.repos["shop"],
		"hook_event_name": "SessionStart", "source": "startup",
	})
	if err != nil {
		return err
	}
	_, out, took, err := d.send(ctx, body)
	if err != nil {
		return err
	}
	d.told(out, took)
	return nil
}

// told prints an injected context unchanged, and its cost.
func (d *demo) told(text []byte, took time.Duration) {
	d.verbatim(string(text))
	d.say("%d tokens (a quarter of its bytes), built in %s. Nobody had to ask for it.", tokens(text), milliseconds(took))
}

// tokens estimates the number of tokens of a text.
func tokens(text []byte) int { return (len(text) + 3) / 4 }

func milliseconds(t time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(t.Microseconds())/1000)
}
