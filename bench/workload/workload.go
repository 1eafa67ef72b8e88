package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Workload is a generated set of projects and sessions. The same seed and folder produce the
// same workload. It is safe for concurrent use.
type Workload struct {
	Projects []Repository // the first project has the most sessions

	seed   uint64
	words  []string
	source string // text like source code, from which responses are cut
	lean   bool   // see Lean
}

// Repository is a project with its files. The first files are touched most often.
type Repository struct {
	Root  string   // absolute if the workload's folder is
	Files []string // absolute
}

// The size of the workload.
const (
	projectCount    = 24
	filesPerProject = 600
	sourceSize      = 1 << 20
)

// New generates projects as folders below dir. It does not create the folders; see
// MakeRepositories.
func New(dir string, seed uint64) *Workload {
	w := &Workload{seed: seed, words: vocabulary()}
	s := newSpeaker(rand.New(rand.NewPCG(seed, 0)), w.words)
	for i := range projectCount {
		r := Repository{Root: filepath.Join(dir, fmt.Sprintf("%s-%d", s.noun(), i))}
		for range filesPerProject {
			r.Files = append(r.Files, filepath.Join(r.Root, s.file()))
		}
		w.Projects = append(w.Projects, r)
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

// Lean returns the same workload with short responses, for benchmarks in which only the
// resulting rows matter.
func (w *Workload) Lean() *Workload {
	lean := *w
	lean.lean = true
	return &lean
}

// Words returns the vocabulary, the most frequent words first. The caller must not change it.
func (w *Workload) Words() []string { return w.words }

// MakeRepositories creates the projects' folders, each with an empty repository, since a hook
// inspects the files around its working directory.
func (w *Workload) MakeRepositories() error {
	for _, r := range w.Projects {
		git := filepath.Join(r.Root, ".git")
		err := errors.Join(
			os.MkdirAll(filepath.Join(git, "objects"), 0o700),
			os.MkdirAll(filepath.Join(git, "refs"), 0o700),
			os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600),
			os.WriteFile(filepath.Join(git, "config"), []byte("[remote \"origin\"]\n\turl = https://git.example/team/"+
				filepath.Base(r.Root)+".git\n"), 0o600),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// Session is one generated conversation with an endless sequence of steps. It must not be used
// concurrently.
type Session struct {
	*speaker
	ID string // session id of the harness

	load    *Workload
	tag     string // part of its calls' ids
	project Repository
	near    []string // files that it works on
	at      time.Time
	left    int // remaining calls of this turn
	calls   int // calls of the session so far
	begun   bool
}

// Session returns the n-th conversation, which starts at the given time.
func (w *Workload) Session(n int, at time.Time) *Session {
	r := rand.New(rand.NewPCG(w.seed, uint64(n)+1))
	s := &Session{speaker: newSpeaker(r, w.words), load: w, at: at, tag: fmt.Sprintf("%016x", r.Uint64())}
	s.ID = fmt.Sprintf("%08x-%04x-4000-8000-%012x", r.Uint32(), n&0xffff, r.Uint64()&0xffffffffffff)
	s.project = w.Projects[int(rand.NewZipf(r, 1.3, 2, projectCount-1).Uint64())]
	popular := rand.NewZipf(r, 1.1, 8, filesPerProject-1)
	for range 5 + r.IntN(30) {
		s.near = append(s.near, s.project.Files[popular.Uint64()])
	}
	return s
}

// Step is one event of a session, as its harness would report it.
type Step struct {
	Event    string // the hook event
	At       time.Time
	Text     string // prompt, message, or source of a session's start
	Tool     string
	ID       string // tool_use_id
	Input    map[string]any
	Response any
	Error    string // only for PostToolUseFailure
	Millis   int
}

// Next returns the next step: the session's start, then turns of a prompt, calls and a message.
func (s *Session) Next() Step {
	s.at = s.at.Add(time.Duration(2+s.IntN(50)) * time.Second)
	switch {
	case !s.begun:
		s.begun, s.left = true, -1
		return Step{Event: "SessionStart", At: s.at, Text: "startup"}
	case s.left < 0:
		s.left = 2 + s.IntN(14)
		return Step{Event: "UserPromptSubmit", At: s.at, Text: s.prompt()}
	case s.left == 0:
		s.left = -1
		return Step{Event: "Stop", At: s.at, Text: s.Message()}
	}
	s.left--
	return s.call()
}

func (s *Session) prompt() string {
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

// Message returns an agent's message at the end of a turn.
func (s *Session) Message() string {
	var b strings.Builder
	fmt.Fprintf(&b, "I changed `%s` in %s. ", s.camel(2), filepath.Base(one(s.speaker, s.near)))
	for range 3 + s.IntN(14) {
		b.WriteString(capital(s.sentence(5, 18)) + ". ")
	}
	return b.String()
}

// Identifier returns a code identifier of n words.
func (s *Session) Identifier(n int) string { return s.camel(n) }

// Line returns a whole line of the generated tools' output, without its line break.
func (s *Session) Line() string {
	rest := s.load.source[s.IntN(sourceSize/2):]
	_, rest, _ = strings.Cut(rest, "\n")
	line, _, _ := strings.Cut(rest, "\n")
	return line
}

// text returns text similar to source code of about n bytes, often less and sometimes much
// more.
func (s *Session) text(n int) string {
	n = min(int(float64(n)*s.ExpFloat64())+20, 60_000)
	if s.load.lean {
		n = min(n, 80)
	}
	from := s.IntN(sourceSize - n)
	return s.load.source[from : from+n]
}
