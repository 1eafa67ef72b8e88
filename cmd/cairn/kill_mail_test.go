package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestKilledWritersOfMailLoseNothingAcknowledged kills servers of both kinds, hooks and commands at
// random times. Meanwhile they write mail into one data folder, and servers archive it (mail §11,
// §14). Every acknowledged message, receipt, release, renewal and notice must be stored, and each
// id must be unique. Afterwards the archive contains everything once, and all checks succeed.
// CAIRN_SEED repeats a plan.
func TestKilledWritersOfMailLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	kills, seed := int(number(t, "CAIRN_SOAK_KILLS", int64(often(100, 20)))), number(t, "CAIRN_SEED", time.Now().UnixNano())
	t.Logf("CAIRN_SEED=%d", seed)
	s := newSiege(t, seed)
	for s.landed < kills && !t.Failed() {
		s.round()
	}
	s.acknowledged()
	s.archivedOnce()
	s.check()
	if e := s.run(s.command("doctor"), nil); e.code != 0 {
		t.Errorf("doctor: exit %d, %s", e.code, e.stdout)
	}
	t.Logf("killed %v; %d messages, %d reservations, %d renewals, %d releases, %d acknowledgements, %d events, %d notices", s.killed,
		len(s.messages), len(s.held), len(s.renewed), len(s.released), len(s.acked), len(s.events), len(s.shown))
	rarest := min(len(s.acked), len(s.renewed), len(s.released), len(s.events), len(s.shown))
	if len(s.messages) < kills/4 || len(s.held) < kills/4 || kills >= 100 && rarest == 0 {
		t.Error("too little was acknowledged to show anything")
	}
}

// siege is one data folder whose writers are killed, and the writes that were acknowledged.
type siege struct {
	*home
	random *rand.Rand // chooses the plan
	landed int
	killed map[string]int

	typical map[string]time.Duration // duration of a hook or command that is not killed

	mu       sync.Mutex
	step     int
	messages map[int64]string    // subjects by message id
	held     map[int64]string    // patterns by reservation id
	renewed  map[int64]mail.Time // earliest allowed expiry by reservation id
	released map[int64]bool
	acked    map[int64]mail.Time
	events   []string // contents stored by hooks
	shown    []int64  // ids of messages printed by a hook
}

func newSiege(t *testing.T, seed int64) *siege {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	s := &siege{
		home: newHome(t), random: rand.New(rand.NewPCG(uint64(seed), 0)), killed: map[string]int{}, typical: map[string]time.Duration{},
		messages: map[int64]string{}, held: map[int64]string{}, renewed: map[int64]mail.Time{}, released: map[int64]bool{}, acked: map[int64]mail.Time{},
	}
	s.vars["TMPDIR"] = t.TempDir() // because doctor reports leftover files of other processes
	s.settle("[guard]\nauto_reserve = true\nmax_ms = 20000\n[mail]\nnotice_interval_seconds = 1\n")
	for _, name := range []string{"GreenLake", "BlueDog"} {
		began := time.Now()
		s.cairn("agents", "register", name, "--program", "codex", "--model", "m1")
		s.typical["command"], s.typical["hook"] = time.Since(began), time.Since(began)
	}
	return s
}

// round starts a server, kills other processes while it works, and then kills the server.
func (s *siege) round() {
	s.t.Helper()
	serve := s.overStdio
	kind := "stdio"
	if s.random.IntN(2) == 0 {
		serve, kind = s.overHTTP, "http"
	}
	server, do, leave := serve()
	var work sync.WaitGroup
	work.Go(func() {
		for s.writes(do) {
		}
	})
	for range 5 {
		if s.random.IntN(2) == 0 {
			s.killHook()
		} else {
			s.killCommand()
		}
	}
	<-time.After(time.Duration(s.random.IntN(60)) * time.Millisecond)
	if err := server.Process.Kill(); err != nil {
		s.t.Error(err)
	}
	work.Wait()
	leave()
	s.dead(kind)
}

// dead counts a kill. Afterwards the store must be intact.
func (s *siege) dead(kind string) {
	s.t.Helper()
	s.landed++
	s.killed[kind]++
	db := s.raw()
	var found string
	err := db.QueryRowContext(s.t.Context(), "PRAGMA quick_check").Scan(&found)
	if err := errors.Join(err, db.Close()); err != nil || found != "ok" {
		s.t.Errorf("after the kill of a process (%s): %s, %v", kind, found, err)
	}
}

// doing calls a tool. ok is false if there was no response.
type doing func(tool string, args fields) (answer string, ok bool)

func (s *siege) overStdio() (*exec.Cmd, doing, func()) {
	s.t.Helper()
	c := s.dial("", nil)
	return c.server, func(tool string, args fields) (string, bool) {
		args["project_key"] = s.repo
		r, err := c.CallTool(s.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil || len(r.Content) == 0 {
			return "", false
		}
		text := r.Content[0].(*sdk.TextContent).Text
		if r.IsError {
			s.t.Errorf("%s %v: %s", tool, args, text)
		}
		return text, !r.IsError
	}, func() { _ = c.Wait() }
}

func (s *siege) overHTTP() (*exec.Cmd, doing, func()) {
	s.t.Helper()
	w := s.listenUntil()
	return w.server, func(tool string, args fields) (string, bool) {
		body, err := json.Marshal(args)
		if err != nil {
			s.t.Error(err)
		}
		r, err := w.send(http.MethodPost, "/v1/projects/shop/mail/"+tool, string(body))
		if err != nil {
			return "", false
		}
		if r.status != http.StatusOK {
			s.t.Errorf("%s %v: %d %s", tool, args, r.status, r.body)
		}
		return r.body, r.status == http.StatusOK
	}, func() { _ = w.server.Wait(); w.http.CloseIdleConnections() }
}

// deed is one call, and a function that records the writes acknowledged by its response.
type deed struct {
	tool    string
	args    fields
	command []string // the equivalent command line
	answer  func(text string) error
}

// writes executes one deed. It returns false if there was no response.
func (s *siege) writes(do doing) bool {
	d := s.deed(rand.IntN)
	text, ok := do(d.tool, d.args)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := d.answer(text); err != nil {
		s.t.Errorf("%s %v: %v: %s", d.tool, d.args, err, text)
	}
	return true
}

// deed returns a random call: a new message or reservation, or a change of an acknowledged one.
func (s *siege) deed(random func(int) int) deed {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step++
	about := func(ids []int64) int64 { return ids[random(len(ids))] }
	held, letters := slices.Collect(maps.Keys(s.held)), slices.Collect(maps.Keys(s.messages))
	switch n := random(8); {
	case n < 3 || len(held) == 0 || len(letters) == 0:
		if n%2 == 0 || len(letters) == 0 {
			return s.sends(fmt.Sprintf("letter%06d", s.step))
		}
		return s.takes(fmt.Sprintf("part%06d/**", s.step))
	case n < 5:
		return s.acknowledges(about(letters))
	case n < 7:
		return s.renews(about(held))
	default:
		return s.gives(about(held))
	}
}

func (s *siege) sends(subject string) deed {
	return deed{
		"send_message", fields{"sender_name": "GreenLake", "to": "BlueDog", "subject": subject, "body_md": "Words.\n", "ack_required": true, "thread_id": "T-1"},
		[]string{"mail", "send", "BlueDog", "--as", "GreenLake", "--subject", subject, "--body", "Words.", "--ack", "--thread", "T-1", "--json"},
		func(text string) error {
			var a messages.Sent
			if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Deliveries) != 1 {
				return errors.Join(err, errors.New("no delivery"))
			}
			id := a.Deliveries[0].Payload.ID
			if was, twice := s.messages[id]; twice {
				return fmt.Errorf("%d was given before, to %s", id, was)
			}
			s.messages[id] = subject
			return nil
		},
	}
}

func (s *siege) takes(path string) deed {
	return deed{
		"file_reservation_paths", fields{"agent_name": "BlueDog", "paths": []string{path}},
		[]string{"reserve", path, "--as", "BlueDog", "--json"},
		func(text string) error {
			var a reservations.GrantedReservations
			if err := json.Unmarshal([]byte(text), &a); err != nil || len(a.Granted) != 1 {
				return errors.Join(err, errors.New("not granted"))
			}
			if was, twice := s.held[a.Granted[0].ID]; twice {
				return fmt.Errorf("%d was given before, to %s", a.Granted[0].ID, was)
			}
			s.held[a.Granted[0].ID] = path
			return nil
		},
	}
}

func (s *siege) renews(id int64) deed {
	return deed{
		"renew_file_reservations", fields{"agent_name": "BlueDog", "file_reservation_ids": []int64{id}, "extend_seconds": 600},
		[]string{"renew", "--id", fmt.Sprint(id), "--for", "600", "--as", "BlueDog", "--json"},
		func(text string) error {
			var a reservations.Renewed
			err := json.Unmarshal([]byte(text), &a)
			for _, r := range a.Reservations { // empty if it was released
				s.renewed[r.ID] = max(s.renewed[r.ID], r.New)
			}
			return err
		},
	}
}

func (s *siege) gives(id int64) deed {
	return deed{
		"release_file_reservations", fields{"agent_name": "BlueDog", "file_reservation_ids": []int64{id}},
		[]string{"release", "--id", fmt.Sprint(id), "--as", "BlueDog", "--json"},
		func(text string) error {
			var a reservations.ReleasedReservations
			err := json.Unmarshal([]byte(text), &a)
			s.released[id] = true // by this call or an earlier one
			return err
		},
	}
}

func (s *siege) acknowledges(id int64) deed {
	return deed{
		"acknowledge_message", fields{"agent_name": "BlueDog", "message_id": id},
		[]string{"mail", "ack", fmt.Sprint(id), "--as", "BlueDog", "--json"},
		func(text string) error {
			var a messages.Acknowledged
			if err := json.Unmarshal([]byte(text), &a); err != nil || !a.Acknowledged {
				return errors.Join(err, errors.New("not acknowledged"))
			}
			if was, again := s.acked[id]; again && was != a.At {
				return fmt.Errorf("first acknowledged at %s", was)
			}
			s.acked[id] = a.At
			return nil
		},
	}
}

// killCommand kills a command, or records the writes that it acknowledged.
func (s *siege) killCommand() {
	s.t.Helper()
	d := s.deed(s.random.IntN)
	cmd := s.command(d.command...)
	if out, lived := s.shot("command", cmd); lived {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := d.answer(out); err != nil {
			s.t.Errorf("%q: %v: %s", d.command, err, out)
		}
	}
}

var printedNumber = regexp.MustCompile(`#(\d+) (?:low|normal|high|urgent) `)

// killHook kills a hook that leases a file or shows mail to BlueDog's session.
func (s *siege) killHook() {
	s.t.Helper()
	s.mu.Lock()
	s.step++
	n := s.step
	s.mu.Unlock()
	content := fmt.Sprintf("please do step%06d", n)
	payload := s.payload("UserPromptSubmit", fields{"session_id": "dog", "prompt": content, "prompt_id": content})
	if n%3 == 0 { // the next edit leases the file
		content = ""
		payload = s.payload("PreToolUse", fields{
			"session_id": "dog", "tool_name": "Edit", "tool_use_id": fmt.Sprint("toolu_", n),
			"tool_input": fields{"file_path": filepath.Join(s.repo, fmt.Sprintf("edit%06d.go", n)), "old_string": "a", "new_string": "b"},
		})
	}
	cmd := s.command("record")
	cmd.Env = append(cmd.Env, "CAIRN_AGENT=BlueDog")
	cmd.Stdin = bytes.NewReader(payload)
	out, lived := s.shot("hook", cmd)
	if !lived {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if content != "" {
		s.events = append(s.events, content)
	}
	for _, m := range printedNumber.FindAllStringSubmatch(out, -1) {
		id, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			s.t.Error(err)
		}
		s.shown = append(s.shown, id)
	}
}

// shot starts a process and kills it at a random time; one in four is not killed. lived is true if
// the process exited by itself, which must be a success.
func (s *siege) shot(kind string, cmd *exec.Cmd) (out string, lived bool) {
	s.t.Helper()
	var said, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &told
	began := time.Now()
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	instant := time.Duration(1.2 * s.random.Float64() * float64(s.typical[kind]))
	if s.random.IntN(4) == 0 {
		instant = stopLimit
	}
	timer := time.AfterFunc(instant, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait()
	timer.Stop()
	code := cmd.ProcessState.ExitCode()
	if code == -1 || runtime.GOOS == "windows" && code == 1 {
		s.dead(kind)
		s.typical[kind] += s.typical[kind] / 20
		return "", false
	}
	s.typical[kind] = (s.typical[kind] + time.Since(began)) / 2
	if code != 0 {
		s.t.Errorf("cairn %q: exit %d, %s", cmd.Args[1:], code, &told)
		return "", false
	}
	return said.String(), true
}

// acknowledged compares the store with all acknowledged writes.
func (s *siege) acknowledged() {
	s.t.Helper()
	subjects := s.column(`SELECT id, subject FROM mail_messages`)
	for id, subject := range s.messages {
		if subjects[id] != subject {
			s.t.Errorf("message %d, %s: there is %q", id, subject, subjects[id])
		}
	}
	patterns := s.column(`SELECT id, path_pattern FROM mail_reservations`)
	for id, pattern := range s.held {
		if patterns[id] != pattern {
			s.t.Errorf("reservation %d of %s: there is %q", id, pattern, patterns[id])
		}
	}
	expiries := s.column(`SELECT id, expires_ts FROM mail_reservations`)
	for id, until := range s.renewed {
		if n, err := strconv.ParseInt(expiries[id], 10, 64); err != nil || mail.Time(n) < until {
			s.t.Errorf("reservation %d was renewed until %s, and ends %s", id, until, expiries[id])
		}
	}
	ends := s.column(`SELECT id, released_ts FROM mail_reservations`)
	for id := range s.released {
		if ends[id] == "" {
			s.t.Errorf("reservation %d was released and is not", id)
		}
	}
	receipts := s.column(`SELECT message_id, ack_ts FROM mail_recipients r JOIN mail_agents a ON a.id = r.agent_id WHERE a.name = 'BlueDog'`)
	for id, at := range s.acked {
		if receipts[id] != fmt.Sprint(int64(at)) {
			s.t.Errorf("message %d was acknowledged at %d: there is %q", id, at, receipts[id])
		}
	}
	shown := s.column(`SELECT message_id, shown_ts FROM mail_recipients r JOIN mail_agents a ON a.id = r.agent_id WHERE a.name = 'BlueDog'`)
	for _, id := range s.shown {
		if shown[id] == "" {
			s.t.Errorf("message %d was printed, and is not noted as shown", id)
		}
	}
	wantOnce(s.t, s.contents(), s.events)
	s.wantRows(`SELECT count(*) - count(DISTINCT uid) FROM (SELECT uid FROM mail_messages UNION ALL SELECT uid FROM mail_reservations)`, "0")
	if leases := s.rows(`SELECT count(*) FROM mail_reservations WHERE source = 'edit'`); leases[0] == "0" && s.landed >= 100 {
		s.t.Error("no hook took a lease")
	}
}

// column returns texts by row number.
func (s *siege) column(query string) map[int64]string {
	s.t.Helper()
	out := map[int64]string{}
	for _, row := range s.rows(query) {
		number, text, _ := strings.Cut(row, "|")
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		if _, twice := out[id]; twice {
			s.t.Errorf("%s: %d is there twice", query, id)
		}
		out[id] = text
	}
	return out
}

// archivedOnce drains the archive. It expects every message in the archive once, no empty commit,
// and nothing left to rebuild.
func (s *siege) archivedOnce() {
	s.t.Helper()
	archive := filepath.Join(s.dataDir(), "archive", "shop")
	before, _ := gitIn(archive, "rev-list", "--count", "main")
	s.drain()
	s.wantAgreement()
	tree, err := gitIn(archive, "ls-tree", "-r", "--name-only", "main", "messages/")
	if err != nil {
		s.t.Fatal(err, tree)
	}
	copies := map[string]int{}
	for path := range strings.Lines(tree) {
		if !strings.HasPrefix(path, "messages/threads/") {
			copies[strings.TrimSuffix(path[strings.LastIndex(path, "__")+2:], ".md\n")]++
		}
	}
	for id := range s.messages {
		if n := copies[fmt.Sprint(id)] + copies[fmt.Sprint(id)+".md"]; n != 1 {
			s.t.Errorf("message %d is archived %d times", id, n)
		}
	}
	trees, err := gitIn(archive, "log", "--format=%T", "main")
	list := strings.Fields(trees)
	for i := 1; i < len(list); i++ {
		if list[i] == list[i-1] {
			s.t.Errorf("commit %d from the end changes nothing", i)
		}
	}
	if err != nil || before == "" || before == "0" {
		s.t.Errorf("%v: no server archived anything before it was killed", err)
	}
	var done struct{ Written, Commits int }
	if err := json.Unmarshal([]byte(s.cairn("reconcile", "--rebuild", "--json")), &done); err != nil || done.Written != 0 || done.Commits != 0 {
		s.t.Errorf("a rebuild afterwards: %+v, %v", done, err)
	}
	s.t.Logf("%d commits, %s before the last sync", len(list), before)
}
