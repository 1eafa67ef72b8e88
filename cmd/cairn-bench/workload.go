package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// workload invents what agents do. The same seed and folder give the same
// sessions; the shares of tools, the lengths of texts and the sizes of responses
// are near those of real transcripts of Claude Code.
type workload struct {
	seed     uint64
	words    []string
	projects []repository
	source   string // text like source code, of which responses are pieces
	lean     bool   // short responses, where only the rows matter
}

// repository is a project with its files; the first are touched most.
type repository struct {
	root  string
	files []string // absolute
}

// The size of the invented world.
const (
	projectCount    = 24
	filesPerProject = 600
	sourceSize      = 1 << 20
)

// newWorkload invents the projects as folders below dir.
func newWorkload(dir string, seed uint64) *workload {
	w := &workload{seed: seed, words: vocabulary()}
	s := newSpeaker(rand.New(rand.NewPCG(seed, 0)), w.words)
	for i := range projectCount {
		r := repository{root: filepath.Join(dir, fmt.Sprintf("%s-%d", s.noun(), i))}
		for range filesPerProject {
			r.files = append(r.files, filepath.Join(r.root, s.file()))
		}
		w.projects = append(w.projects, r)
	}
	var b strings.Builder
	for b.Len() < sourceSize {
		fmt.Fprintf(&b, "\t%s := %s(%s, %q)\n", s.camel(2), s.camel(2), s.camel(1), s.sentence(1, 6))
	}
	w.source = b.String()
	return w
}

func (s *speaker) file() string {
	dirs := []string{"internal", "internal", "src", "pkg", "cmd", "web/components", "docs"}
	endings := []string{".go", ".go", ".go", "_test.go", ".ts", ".tsx", ".md", ".sql"}
	return filepath.FromSlash(one(s, dirs) + "/" + s.noun() + "/" + s.noun() + "_" + s.noun() + one(s, endings))
}

// makeRepositories makes the projects' folders, each with an empty repository,
// since a hook looks at the files around its working directory.
func (w *workload) makeRepositories() error {
	for _, r := range w.projects {
		git := filepath.Join(r.root, ".git")
		err := errors.Join(
			os.MkdirAll(filepath.Join(git, "objects"), 0o700),
			os.MkdirAll(filepath.Join(git, "refs"), 0o700),
			os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600),
			os.WriteFile(filepath.Join(git, "config"), []byte("[remote \"origin\"]\n\turl = https://git.example/team/"+
				filepath.Base(r.root)+".git\n"), 0o600),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// session is one invented conversation, step after step without end.
type session struct {
	*speaker
	load    *workload
	id      string
	tag     string // of its calls' ids
	project repository
	near    []string // the files that it works on
	at      time.Time
	left    int // calls of this turn
	calls   int // of the session so far
	begun   bool
}

// session is the n-th conversation; it starts at the given time.
func (w *workload) session(n int, at time.Time) *session {
	r := rand.New(rand.NewPCG(w.seed, uint64(n)+1))
	s := &session{speaker: newSpeaker(r, w.words), load: w, at: at, tag: fmt.Sprintf("%016x", r.Uint64())}
	s.id = fmt.Sprintf("%08x-%04x-4000-8000-%012x", r.Uint32(), n&0xffff, r.Uint64()&0xffffffffffff)
	s.project = w.projects[int(rand.NewZipf(r, 1.3, 2, projectCount-1).Uint64())]
	popular := rand.NewZipf(r, 1.1, 8, filesPerProject-1)
	for range 5 + r.IntN(30) {
		s.near = append(s.near, s.project.files[popular.Uint64()])
	}
	return s
}

// step is one thing that happens in a session, as its harness would report it.
type step struct {
	Event    string // the hook event
	At       time.Time
	Text     string // prompt, message, or source of a session's start
	Tool     string
	ID       string // tool_use_id
	Input    map[string]any
	Response any
	Error    string // of a PostToolUseFailure
	Millis   int
}

// next is what happens next: the session's start, then turns of a prompt, calls
// and a message.
func (s *session) next() step {
	s.at = s.at.Add(time.Duration(2+s.IntN(50)) * time.Second)
	switch {
	case !s.begun:
		s.begun, s.left = true, -1
		return step{Event: "SessionStart", At: s.at, Text: "startup"}
	case s.left < 0:
		s.left = 2 + s.IntN(14)
		return step{Event: "UserPromptSubmit", At: s.at, Text: s.prompt()}
	case s.left == 0:
		s.left = -1
		return step{Event: "Stop", At: s.at, Text: s.message()}
	}
	s.left--
	return s.call()
}

func (s *session) prompt() string {
	file := filepath.Base(one(s.speaker, s.near))
	opening := one(s.speaker, []string{
		"fix the failing test in " + file, "why does " + s.camel(2) + " return " + s.word() + "?",
		"add " + s.noun() + " to " + s.camel(2), "refactor " + file + " so that", "look at the " + s.noun() + " and",
		"continue", "the " + s.noun() + " " + s.noun() + " is still wrong,",
	})
	if s.IntN(25) == 0 {
		opening += " " + one(s.speaker, cjkPhrases())
	}
	return opening + " " + s.sentence(3, 40)
}

func (s *session) message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "I changed `%s` in %s. ", s.camel(2), filepath.Base(one(s.speaker, s.near)))
	for range 3 + s.IntN(14) {
		b.WriteString(capital(s.sentence(5, 18)) + ". ")
	}
	return b.String()
}

// text is a piece of something like source code, of about n bytes, often less
// and sometimes much more.
func (s *session) text(n int) string {
	n = min(int(float64(n)*s.ExpFloat64())+20, 60_000)
	if s.load.lean {
		n = min(n, 80)
	}
	from := s.IntN(sourceSize - n)
	return s.load.source[from : from+n]
}
