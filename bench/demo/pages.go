package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// windowBefore is the file as shop's generated sessions find it. windowAfter is the file after
// their changes and the user's.
const (
	windowBefore = `package refund

import (
	"math"
	"time"
)

// Open reports whether an order may still be refunded.
func Open(o Order) bool {
	return days(o.Paid, time.Now()) <= 30
}

func days(from, to time.Time) int {
	return int(math.Ceil(to.Sub(from).Hours()/24)) + 1
}
`
	windowAfter = `package refund

import "time"

// Open reports whether an order may still be refunded.
func Open(o Order, now time.Time) bool {
	return days(o.Paid.In(shopZone), now.In(shopZone)) <= 30
}

func days(from, to time.Time) int {
	return civilDay(to) - civilDay(from)
}
`
)

// teamwork writes additional data of agents in shop and billing: names, records, mail,
// reservations and memories.
func (h *home) teamwork(ctx context.Context) error {
	if err := h.write("shop", "internal/refund/window.go", windowAfter); err != nil {
		return err
	}
	for _, c := range []struct {
		repo string
		args []string
	}{
		{"shop", []string{"agents", "register", "BlueLake", "--program", "codex", "--model", "gpt-5", "--task", "partial refunds"}},
		{"shop", []string{"agents", "register", "GreenCastle", "--program", "claude-code", "--model", "claude-opus-4-5", "--task", "the refund window"}},
		{"billing", []string{"agents", "register", "RedStone", "--program", "gemini", "--model", "gemini-3", "--task", "postings"}},
		{"shop", []string{"records", "create", "--session", "demo", "--type", "decision", "--title", "Refunds", "--summary", "How the shop refunds", "--body", "What holds for all refunds is below."}},
		{"shop", []string{"records", "create", "--session", "demo", "--parent", "R001", "--type", "conclusion", "--title", "The shop's zone, not the machine's", "--summary", "Refund days are counted in the time zone of the shop", "--body", "The day of payment does not count. See `internal/refund/window.go#L5-L8`."}},
		{"shop", []string{"records", "create", "--session", "demo", "--parent", "R001", "--type", "conclusion", "--title", "Amounts are integer cents", "--summary", "No floating point anywhere", "--body", "Rounding happens once, where the tax is computed."}},
		{"shop", []string{"records", "create", "--session", "demo", "--parent", "R001", "--type", "question", "--title", "Who pays the fee of a partial refund?", "--summary", "The provider keeps its fee", "--body", "Finance has been asked. Until then **nothing** is deducted."}},
		{"billing", []string{"records", "create", "--session", "demo-billing", "--type", "decision", "--title", "One posting per refund", "--summary", "Partial refunds are posted one by one", "--body", "So that each can be reversed."}},
		{"shop", []string{"reserve", "internal/refund/**", "--as", "GreenCastle", "--reason", "the refund window"}},
		{"shop", []string{"reserve", "cmd/refundctl/**", "--as", "BlueLake", "--reason", "partial refunds"}},
		{"billing", []string{"reserve", "tally/*.py", "--as", "RedStone", "--shared", "--reason", "postings"}},
		{"shop", []string{"mail", "send", "BlueLake", "--as", "GreenCastle", "--subject", "Refund days: which zone", "--body", "Please take the zone from `refund.Open`, do not count days again.", "--thread", "refund-days"}},
		{"shop", []string{"mail", "overseer", "BlueLake", "--subject", "Partial refunds", "--body", "Is anything missing for Friday?"}},
		{"shop", []string{"mail", "reply", "2", "--as", "BlueLake", "--body", "May I add a `--dry-run` to refundctl?"}},
		{"shop", []string{"memory", "add-entry", "Refund days: **30**, the day of payment not counted, in the time zone of the shop.", "--tag", "topic=refunds"}},
		{"shop", []string{"memory", "add-entry", "The sandbox of the payment provider forgets orders every Sunday.", "--tag", "topic=sandbox"}},
		{"shop", []string{"memory", "update-context", "# shop\n\n- Refunds are open for **30 days** in the zone of the shop.\n- Amounts are integer cents.\n- CI runs in UTC; tests must not read the clock."}},
	} {
		if _, err := h.output(ctx, h.repos[c.repo], c.args...); err != nil {
			return err
		}
	}
	return nil
}

// showPages is the last part of the demo. It serves the pages over the demo's store and prints
// their address and the content of the first page. The server runs until the demo ends.
func (d *demo) showPages(ctx context.Context) error {
	if err := d.home.teamwork(ctx); err != nil {
		return err
	}
	s, err := d.home.serve(ctx)
	if err != nil {
		return err
	}
	said, err := s.today(ctx)
	if err = errors.Join(err, s.stop()); err != nil {
		return err
	}
	d.heading("The same as pages")
	d.say("`cairn open` shows all of it in the browser. On this store it says:")
	d.line("\n  %s", said)
	d.line("  It was served at %s; `make demo ARGS=--pages` keeps it running.", s.address)
	return nil
}

// server is a running `cairn serve --http`.
type server struct {
	cmd     *exec.Cmd
	address string // http://127.0.0.1:PORT
	token   string
}

// serve starts a server on a free port over the demo's store.
func (h *home) serve(ctx context.Context) (*server, error) {
	token, err := h.output(ctx, h.dir, "http-token")
	if err != nil {
		return nil, err
	}
	cmd := h.command(ctx, h.dir, "serve", "--http", "127.0.0.1:0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(said).ReadString('\n')
	m := regexp.MustCompile(`serving (http://\S+) `).FindStringSubmatch(line)
	if m == nil {
		return nil, errors.Join(fmt.Errorf("the server said %q", strings.TrimSpace(line)), err, cmd.Process.Kill(), cmd.Wait())
	}
	return &server{cmd, m[1], strings.TrimSpace(string(token))}, nil
}

// stop ends the server.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// today returns the content of the first page.
func (s *server) today(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/?format=json", nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	var page struct {
		Sessions, Projects, Commits, Files int
		Failing                            int `json:"failing_checks"`
		Needs                              []struct{ What string }
	}
	if err := json.Unmarshal(text, &page); err != nil {
		return "", fmt.Errorf("%s: %.200s: %w", answer.Status, text, err)
	}
	return fmt.Sprintf("Today: %d sessions in %d projects, %d commits, %d files; %d checks still fail; %d things need you",
		page.Sessions, page.Projects, page.Commits, page.Files, page.Failing, len(page.Needs)), nil
}
