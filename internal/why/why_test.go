package why_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/why"
)

// shop is a real repository with a store of generated sessions.
type shop struct {
	t          *testing.T
	home, root string
	at         time.Time // time of the next event
	lines      int
	sessions   map[string]*strings.Builder
}

func newShop(t *testing.T) *shop {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, home: home, root: filepath.Join(home, "shop"), at: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC), sessions: map[string]*strings.Builder{}}
	write(t, filepath.Join(s.root, "cart.go"), "one\n")
	s.git("init", "-q", "-b", "main")
	s.commit("Start")
	return s
}

func (s *shop) git(args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", s.root}, args...)...)
	date := fmt.Sprintf("@%d +0000", s.at.Unix())
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// later advances the clock by a minute.
func (s *shop) later() { s.at = s.at.Add(time.Minute) }

// commit commits all changes as a person does.
func (s *shop) commit(message string) {
	s.t.Helper()
	s.later()
	s.git("add", "-A")
	s.git("commit", "-q", "-m", message)
}

func (s *shop) line(session, kind string, content any, extra string) {
	s.later()
	if s.sessions[session] == nil {
		s.sessions[session] = &strings.Builder{}
	}
	s.lines++
	fmt.Fprintf(s.sessions[session], `{"type":%q,"uuid":"u%d","sessionId":%q,"cwd":%q,"timestamp":%q,"message":{"role":%q,"content":%s}%s}`+"\n",
		kind, s.lines, session, s.root, s.at.Format(time.RFC3339), kind, content, extra)
}

func (s *shop) prompt(session, text string) { s.line(session, "user", fmt.Sprintf("%q", text), "") }

func (s *shop) call(session, tool, input, result string) {
	id := fmt.Sprintf("t%d", s.lines)
	s.line(session, "assistant", fmt.Sprintf(`[{"type":"tool_use","id":%q,"name":%q,"input":%s}]`, id, tool, input), "")
	s.line(session, "user", fmt.Sprintf(`[{"type":"tool_result","tool_use_id":%q,"content":"ok"}]`, id), `,"toolUseResult":`+result)
}

// edit changes a file as a session does.
func (s *shop) edit(session, name, text string) {
	s.t.Helper()
	write(s.t, filepath.Join(s.root, name), text)
	s.call(session, "Edit", fmt.Sprintf(`{"file_path":%q,"old_string":"a","new_string":"b"}`, filepath.Join(s.root, name)),
		fmt.Sprintf(`{"filePath":%q}`, filepath.Join(s.root, name)))
}

// committed makes a commit as a session does.
func (s *shop) committed(session, message string, options ...string) {
	s.t.Helper()
	s.git("add", "-A")
	s.later()
	s.git(append([]string{"commit", "-q", "-m", message}, options...)...)
	s.call(session, "Bash", `{"command":"git commit -m x"}`, fmt.Sprintf(`{"stdout":"[main %s] %s","stderr":"","interrupted":false}`, s.git("rev-parse", "--short", "HEAD"), message))
}

// open imports the recorded events and opens cairn at the repository's root.
func (s *shop) open() *cairn.Cairn {
	s.t.Helper()
	dir := filepath.Join(s.home, "transcripts")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	for id, text := range s.sessions {
		write(s.t, filepath.Join(dir, id+".jsonl"), text.String())
	}
	c := openIn(s.t, s.home, s.root)
	if r, err := c.Import(s.t.Context(), cairn.ImportArgs{Paths: []string{dir}}); err != nil || len(r.Unreadable) > 0 {
		s.t.Fatalf("%+v, %v", r, err)
	}
	return c
}

func ask(t *testing.T, c *cairn.Cairn, file string, line int) why.Answer {
	t.Helper()
	w, err := c.Why(t.Context(), why.Args{File: file, Line: line})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// told summarises the sessions of an answer: id, via and prompt.
func told(w why.Answer) []string {
	out := []string{}
	for _, s := range w.Sessions {
		prompt := "-"
		if s.Prompt != nil {
			prompt = s.Prompt.Content
		}
		out = append(out, s.SessionID+" "+s.Via+": "+prompt)
	}
	return out
}

func want(t *testing.T, w why.Answer, sessions ...string) {
	t.Helper()
	if got := told(w); !slices.Equal(got, sessions) {
		t.Errorf("%s:%d: %q, want %q; missing %v", w.File, w.Line, got, sessions, w.Missing)
	}
}

func missing(w why.Answer, link string) string {
	var out []string
	for _, m := range w.Missing {
		if m.Link == link {
			out = append(out, m.Why)
		}
	}
	return strings.Join(out, "; ")
}

func TestALineIsTracedToThePromptBehindItsEdit(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.prompt("s1", "add the second line please")
	s.edit("s1", "cart.go", "one\ntwo\n")
	s.prompt("s1", "now commit all of it")
	s.committed("s1", "Two")
	s.prompt("s1", "add the third line please")
	s.edit("s1", "cart.go", "one\ntwo\nthree\n")
	s.committed("s1", "Three")
	// The session that commits may differ from the session that edited.
	s.prompt("s2", "add the fourth line please")
	s.edit("s2", "cart.go", "one\ntwo\nthree\nfour\n")
	s.prompt("s3", "commit what lies around here")
	s.committed("s3", "Four")
	// An uncommitted edit becomes part of an amended commit.
	s.prompt("s4", "add the fifth line please")
	s.edit("s4", "cart.go", "one\ntwo\nthree\nfour\nfive\n")
	s.commit("Five")
	s.prompt("s5", "and the sixth line please")
	s.edit("s5", "cart.go", "one\ntwo\nthree\nfour\nfive\nsix\n")
	s.git("add", "-A")
	s.later()
	s.git("commit", "-q", "--amend", "--no-edit")
	// A failed edit and an edit of another file are not evidence.
	s.prompt("s6", "change something else now")
	s.edit("s6", "other.go", "x\n")
	c := s.open()
	w := ask(t, c, "cart.go", 2)
	want(t, w, "s1 commit: add the second line please")
	if w.Commit.SessionID != "s1" || w.Sessions[0].Edit == nil || w.Sessions[0].Commit == nil || !strings.Contains(string(w.Sessions[0].Summary), `"commits"`) ||
		w.Sessions[0].Intent != "add the second line please" || missing(w, "session") != "" {
		t.Errorf("%+v, %s", w.Sessions[0], w.Sessions[0].Summary)
	}
	want(t, ask(t, c, "cart.go", 3), "s1 commit: add the third line please")
	want(t, ask(t, c, "cart.go", 4), "s3 commit: commit what lies around here", "s2 edit: add the fourth line please")
	w = ask(t, c, "cart.go", 6)
	want(t, w, "s4 edit: add the fifth line please")
	if got := missing(w, "session"); !strings.Contains(got, "rewritten since") {
		t.Errorf("missing: %q", got)
	}
	want(t, ask(t, c, "cart.go", 1))
	w = ask(t, c, "cart.go", 0)
	want(t, w, "s5 edit: and the sixth line please", "s4 edit: add the fifth line please", "s2 edit: add the fourth line please", "s1 edit: add the third line please")
	if len(w.Commits) != 5 || w.Commits[1].SessionID != "s3" || w.Commits[0].SessionID != "" {
		t.Errorf("%+v", w.Commits)
	}
}

func TestARebasedAndRenamedLineIsTracedByItsEdits(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.git("checkout", "-q", "-b", "feature")
	s.prompt("s1", "add the second line please")
	s.edit("s1", "cart.go", "one\ntwo\n")
	s.committed("s1", "Two")
	s.git("checkout", "-q", "main")
	write(t, filepath.Join(s.root, "readme"), "x\n")
	s.commit("Else")
	s.git("checkout", "-q", "feature")
	s.at = s.at.Add(48 * time.Hour)
	s.git("rebase", "-q", "main")
	s.prompt("s2", "call it the basket from now on")
	s.git("mv", "cart.go", "basket.go")
	s.committed("s2", "Basket")
	w := ask(t, s.open(), "basket.go", 2)
	want(t, w, "s1 commit: add the second line please")
	if w.Commit.File != "cart.go" || w.Commit.Subject != "Two" {
		t.Errorf("%+v", w.Commit)
	}
}

func TestWhatCannotBeFollowedIsToldAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.prompt("s1", "draw a picture of the cart")
	s.edit("s1", "cart.png", "\x89PNG\x00\n\x00\n")
	s.commit("Picture")
	s.edit("s1", "long.txt", strings.Repeat("x", 3<<20)+"\nend\n")
	s.commit("Long")
	if err := os.Symlink("cart.go", filepath.Join(s.root, "link.go")); err != nil {
		t.Skip("no symbolic links here")
	}
	write(t, filepath.Join(s.home, "outside.go"), "one\n")
	if err := os.Symlink(filepath.Join(s.home, "outside.go"), filepath.Join(s.root, "out.go")); err != nil {
		t.Fatal(err)
	}
	s.commit("Links")
	c := s.open()
	w := ask(t, c, "cart.png", 1)
	want(t, w, "s1 edit: draw a picture of the cart")
	if !strings.Contains(missing(w, "line"), "binary") || w.Text != "" || len(w.Commits) != 1 {
		t.Errorf("binary: %+v", w)
	}
	w = ask(t, c, "long.txt", 2)
	if w.Text != "end" || w.Commit == nil || w.Commit.Subject != "Long" {
		t.Errorf("long: %+v", w)
	}
	if w = ask(t, c, "link.go", 1); w.File != "cart.go" || w.Commit == nil || w.Commit.Subject != "Start" {
		t.Errorf("a link: %+v", w)
	}
	if w = ask(t, c, "out.go", 1); w.Text != "" || w.Commit != nil || !strings.Contains(missing(w, "commit"), "no Git working tree") || w.Known() {
		t.Errorf("a link out: %+v", w)
	}
	if _, err := c.Why(t.Context(), why.Args{File: "long.txt", Line: 3}); !fault.HasCode(err, "no_such_line") {
		t.Errorf("past the end: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Why(ctx, why.Args{File: "cart.go", Line: 1}); err == nil {
		t.Error("an ended context is no missing link")
	}
	if _, err := openIn(t, s.home, "").Why(t.Context(), why.Args{File: "cart.go"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("relative to nothing: %v", err)
	}
	clone := filepath.Join(s.home, "clone")
	s.git("clone", "-q", "--depth", "1", "file://"+filepath.ToSlash(s.root), clone)
	if w = ask(t, openIn(t, s.home, clone), "cart.go", 1); !strings.Contains(missing(w, "commit"), "shallow") {
		t.Errorf("shallow: %+v", w)
	}
}

func TestSecretsOfALineAreNotTold(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	secret := "gh" + "p_" + strings.Repeat("a1B2", 9)
	write(t, filepath.Join(s.root, "env"), "TOKEN="+secret+"\n")
	s.commit("Leak " + secret)
	w := ask(t, s.open(), "env", 1)
	told, err := json.Marshal(w)
	if err != nil || strings.Contains(string(told), secret) || !strings.Contains(w.Text, "TOKEN=") || !strings.Contains(w.Commit.Subject, "Leak") {
		t.Errorf("%s, %v", told, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a.go", "a.go:3", "a.go:3:4", "a.go#L7-L8", "C:x:9", ":1", "a:0", "a:-1", "a:99999999999999999999", "#L1", "a b:2", "-x:1"} {
		f.Add(s)
	}
	dir := f.TempDir()
	c, err := cairn.Open(cairn.Config{Home: dir, Dir: dir, Cwd: dir})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		if strings.HasPrefix(arg, "/") || strings.Contains(arg, "..") {
			return // the directory may exist on this machine
		}
		file, line := c.ParseWhy(arg)
		if line < -1 || !strings.HasPrefix(arg, file) || line == 0 && file != arg {
			t.Fatalf("%q gives %q, %d", arg, file, line)
		}
	})
}
