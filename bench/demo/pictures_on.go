//go:build pictures

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"cairn"
	"cairn/internal/harness"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/service"
	"cairn/internal/project"
	"cairn/internal/store"
)

// player is an agent of the pictures, and when its session begins.
type player struct {
	agent, program, model string
	before                time.Duration // before now
}

// players returns the agents of the sessions, in the order of the recordings, and of the
// session that still runs.
func players() []player {
	return []player{
		{"GreenCastle", "claude-code", "claude-opus-4-5", 20 * time.Hour},
		{"RedStone", "gemini", "gemini-3", 17*time.Hour + 30*time.Minute},
		{"BlueLake", "codex", "gpt-5", 9 * time.Hour},
		{"RedStone", "gemini", "gemini-3", 5*time.Hour + 45*time.Minute},
		{"GreenCastle", "claude-code", "claude-opus-4-5", 2*time.Hour + 45*time.Minute},
		{"BlueLake", "codex", "gpt-5", 7 * time.Minute},
	}
}

// stillRuns contains the payloads of the session that runs while the pictures are taken.
func stillRuns(shop string) (payloads []map[string]any) {
	for i, p := range []map[string]any{
		{"hook_event_name": "SessionStart", "source": "startup", "model": "gpt-5"},
		{"hook_event_name": "UserPromptSubmit", "prompt": "Give refundctl a --dry-run that prints the postings and writes nothing."},
		{"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": map[string]any{"file_path": shop + "/cmd/refundctl/main.go"}},
		{"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_input": map[string]any{"file_path": shop + "/cmd/refundctl/main.go", "old_string": "run(args)", "new_string": "run(args, *dryRun)"}},
		{"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": map[string]any{"command": "go vet ./cmd/refundctl"}, "tool_response": map[string]any{"stdout": ""}},
	} {
		p["session_id"], p["cwd"], p["tool_use_id"] = "91c4e7b2-08fd-4f5e-b1a6-3e7d20c9a815", shop, fmt.Sprint("toolu_91c4e7b2_", i)
		payloads = append(payloads, p)
	}
	return payloads
}

// fillForPictures records the sessions with the times of a day, each with its agent. It does
// so in this process, because a hook's process uses the present time.
func (h *home) fillForPictures(ctx context.Context) error {
	sessions, err := readRecordings()
	if err != nil {
		return err
	}
	running := recording{file: "the running session", repo: "shop"}
	for _, p := range stillRuns(h.repos["shop"]) {
		line, err := json.Marshal(p)
		if err != nil {
			return err
		}
		running.payloads = append(running.payloads, line)
	}
	values := map[string]string{"home": h.dir, "stripe_key": inventedKey()}
	for name, dir := range h.repos {
		values[name] = dir
	}
	now := time.Now()
	for i, r := range append(sessions, running) {
		if err := h.play(ctx, players()[i], r, values, now); err != nil {
			return fmt.Errorf("%s: %w", r.file, err)
		}
	}
	return h.teamwork(ctx)
}

// play records a session. Some minutes pass between its events, but the last is before now.
func (h *home) play(ctx context.Context, p player, r recording, values map[string]string, now time.Time) error {
	step := min(4*time.Minute, p.before/time.Duration(len(r.payloads)))
	at := now.Add(-p.before)
	if err := h.register(ctx, p, h.repos[r.repo], at); err != nil {
		return err
	}
	for i, line := range r.payloads {
		body, err := fill(line, values)
		if err != nil {
			return err
		}
		offset := time.Duration(i)*step + time.Duration(i*37%50)*step/240
		if err := h.record(ctx, p, body, at.Add(offset)); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return nil
}

// open opens cairn at a time, in a folder and for an agent.
func (h *home) open(cwd, agent string, at time.Time) (*cairn.Cairn, error) {
	config, err := cairn.ConfigOf(func(name string) string {
		for _, v := range h.env() {
			if value, found := strings.CutPrefix(v, name+"="); found {
				return value
			}
		}
		return ""
	}, "")
	if err != nil {
		return nil, err
	}
	config.Cwd, config.Agent, config.Role, config.Clock = cwd, agent, store.Hook, func() time.Time { return at }
	return cairn.Open(config)
}

// register registers the agent in the project of a repository.
func (h *home) register(ctx context.Context, p player, repo string, at time.Time) (err error) {
	c, err := h.open(repo, "", at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return c.Mail().Write(ctx, mail.Caller{Owner: true}, func(ctx context.Context, o *service.Mail, by mail.Caller) error {
		_, err := o.RegisterAgent(ctx, by, agents.RegisterArgs{ProjectKey: repo, Program: p.program, Model: p.model, Name: p.agent})
		return err
	})
}

// record records a payload at a time, as a hook with CAIRN_AGENT does.
func (h *home) record(ctx context.Context, p player, body []byte, at time.Time) (err error) {
	e, err := harness.Hook(body, "claude", h.dir)
	if err != nil {
		return err
	}
	c, err := h.open(e.Cwd, p.agent, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	done, err := c.Record(ctx, e, project.Process{}, false)
	return errors.Join(err, done.Warning)
}
