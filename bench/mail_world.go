package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"cairn/bench/workload"
)

// The size of the workload in mail §11.
const (
	mailProjects = 50
	mailAgents   = 1000
	mailCallers  = 200
)

// mailAgent is an agent of the workload.
type mailAgent struct {
	project string // root of its repository
	name    string

	mu      sync.Mutex
	waiting []int64 // messages that it has not acknowledged yet
}

// take removes and returns a message that waits for the agent's acknowledgement.
func (a *mailAgent) take() (id int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.waiting) == 0 {
		return 0, false
	}
	id, a.waiting = a.waiting[0], a.waiting[1:]
	return id, true
}

func (a *mailAgent) expect(id int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, id)
}

// mailWorld contains the agents. Agent i is in project i mod mailProjects.
type mailWorld struct {
	agents []*mailAgent
	load   *workload.Workload
}

// populate creates projects, each with a separate repository, and agents in them.
func (b *bench) populate(ctx context.Context, m *mailServer) (*mailWorld, error) {
	w := &mailWorld{load: b.load, agents: make([]*mailAgent, mailAgents)}
	roots := make([]string, mailProjects)
	for i := range roots {
		roots[i] = filepath.Join(m.home, "work", fmt.Sprintf("part-%02d", i))
		if err := makeRepository(roots[i]); err != nil {
			return nil, err
		}
		if err := m.mirror(ctx, "ensure_project", args{"human_key": roots[i]}, nil); err != nil {
			return nil, err
		}
	}
	errs := make([]error, 20)
	var all sync.WaitGroup
	for worker := range errs {
		all.Go(func() {
			for i := worker; i < mailAgents && errs[worker] == nil; i += len(errs) {
				a := &mailAgent{project: roots[i%mailProjects]}
				var registered struct{ Name string }
				errs[worker] = m.mirror(ctx, "register_agent", args{"project_key": a.project, "program": "codex", "model": "m1"}, &registered)
				a.name, w.agents[i] = registered.Name, a
			}
		})
	}
	all.Wait()
	return w, errors.Join(errs...)
}

// makeRepository creates the files by which a repository is recognised.
func makeRepository(root string) error {
	for _, dir := range []string{"objects", "refs/heads"} {
		if err := os.MkdirAll(filepath.Join(root, ".git", dir), 0o700); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o600),
		os.WriteFile(filepath.Join(root, ".git", "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tbare = false\n"), 0o600),
	)
}

// other returns another agent in an agent's project.
func (w *mailWorld) other(r *rand.Rand, i int) *mailAgent {
	n := mailAgents / mailProjects
	step := 1 + r.IntN(n-1)
	return w.agents[(i+step*mailProjects)%mailAgents]
}

// text returns a body of about eighty words, with the word frequencies of prose.
func (w *mailWorld) text(r *rand.Rand) string { return prose(r, w.load.Words(), 40+r.IntN(80)) }

// prose returns n words, with the word frequencies of prose.
func prose(r *rand.Rand, words []string, n int) string {
	zipf := rand.NewZipf(r, 1.12, 6, uint64(len(words)-1))
	var b strings.Builder
	for i := range n {
		b.WriteString(words[zipf.Uint64()])
		if i%13 == 12 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// question returns a search query: a word that is in many, some or few messages, or two such
// words.
func (w *mailWorld) question(r *rand.Rand) string {
	words := w.load.Words()
	pick := func(low, high int) string { return words[low+r.IntN(high-low)] }
	switch r.IntN(4) {
	case 0:
		return pick(17, 80)
	case 1:
		return pick(200, 2000)
	case 2:
		return pick(2000, len(words))
	}
	return pick(17, 200) + " " + pick(80, 800)
}
