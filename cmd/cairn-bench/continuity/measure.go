package continuity

import (
	"context"
	"slices"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/redact"
)

// Top is how many named files count.
const Top = 20

// The moments at which a session is asked.
const (
	atStart  = "start"
	atPrompt = "first prompt"
)

// Session is what was asked of one session and what came of it.
type Session struct {
	ID      string    `json:"session"`
	Start   time.Time `json:"start"`
	Project string    `json:"project"`
	First   bool      `json:"first,omitempty"` // no file of the project was known before
	Prompt  string    `json:"prompt"`          // the beginning of the first one, redacted
	Moments []Moment  `json:"moments"`
}

// Moment is one comparison of a session.
type Moment struct {
	When    string    `json:"when"` // start or first prompt
	At      time.Time `json:"at"`
	Edited  Truth     `json:"edited"`
	Touched Truth     `json:"touched"`
	Answers []Answer  `json:"answers"`
}

// Truth is what a session goes on to touch, in its order.
type Truth struct {
	Files []string `json:"files"`
	Cold  int      `json:"cold"` // those that nothing stored names
}

// Answer is what one namer said.
type Answer struct {
	Namer   string   `json:"namer"`
	Named   []string `json:"named"` // distinct, at most 20
	Tokens  int      `json:"tokens"`
	Edited  []string `json:"hits_edited"`
	Touched []string `json:"hits_touched"`
}

// measure asks every session of the span between from and until; a zero time is
// no bound. Sessions before it are only stored.
func (r *replay) measure(ctx context.Context, sessions []*session, from, until time.Time) ([]Session, error) {
	type ask struct {
		*session
		event *event
		when  string
		out   *Session
	}
	var asks []ask
	var out []*Session
	for _, s := range sessions {
		if s.start.Before(from) || !until.IsZero() && !s.start.Before(until) {
			continue
		}
		m := &Session{ID: s.id, Start: s.start}
		if s.events[0].repo != nil {
			m.Project = s.events[0].repo.name
		}
		out = append(out, m)
		asks = append(asks, ask{s, s.events[0], atStart, m})
		if p := s.firstPrompt(); p != nil {
			m.Prompt = beginning(p.Text, r.filter)
			asks = append(asks, ask{s, p, atPrompt, m})
		}
	}
	slices.SortStableFunc(asks, func(a, b ask) int { return a.event.At.Compare(b.event.At) })
	told := map[*Session]answer{}
	for _, a := range asks {
		q, err := r.ask(ctx, a.event)
		if err != nil {
			return nil, err
		}
		if a.when == atPrompt {
			q.prompt, q.told = a.event.Text, told[a.out]
		} else {
			a.out.First = len(r.known[q.repo]) == 0
		}
		m := Moment{When: a.when, At: a.event.At}
		m.Edited, m.Touched = a.truth(q)
		if err := m.answers(ctx, q, told, a.out); err != nil {
			return nil, err
		}
		a.out.Moments = append(a.out.Moments, m)
	}
	list := make([]Session, 0, len(out))
	for _, s := range out {
		list = append(list, *s)
	}
	return list, nil
}

func (m *Moment) answers(ctx context.Context, q *question, told map[*Session]answer, s *Session) error {
	for _, n := range namers() {
		if n.prompts && m.When != atPrompt {
			continue
		}
		a, err := n.ask(ctx, q)
		if err != nil {
			return err
		}
		if n.name == "injected" {
			told[s] = a
		}
		m.add(n.name, a)
	}
	return nil
}

// add keeps the first distinct files of an answer and what they hit.
func (m *Moment) add(name string, a answer) {
	out := Answer{Namer: name, Named: []string{}, Tokens: a.tokens, Edited: []string{}, Touched: []string{}}
	for _, file := range a.files {
		if len(out.Named) < Top && !slices.Contains(out.Named, file) {
			out.Named = append(out.Named, file)
		}
	}
	out.Edited, out.Touched = m.Edited.hits(out.Named), m.Touched.hits(out.Named)
	m.Answers = append(m.Answers, out)
}

func (t *Truth) hits(named []string) []string {
	hits := []string{}
	for _, file := range named {
		if slices.Contains(t.Files, file) {
			hits = append(hits, file)
		}
	}
	return hits
}

// truth is what the session touches from the question's moment on.
func (s *session) truth(q *question) (edited, touched Truth) {
	edited.Files, touched.Files = []string{}, []string{}
	now := time.Unix(0, q.clock.Load())
	for _, e := range s.events {
		if e.At.Before(now) || e.repo != q.repo {
			continue
		}
		for i := range e.Calls {
			c := &e.Calls[i]
			file, inside := e.relative(c.Path)
			if !isFile(c) || !inside {
				continue
			}
			touched.add(file, q)
			if c.Action != observation.Read {
				edited.add(file, q)
			}
		}
	}
	return edited, touched
}

func (t *Truth) add(file string, q *question) {
	if slices.Contains(t.Files, file) {
		return
	}
	t.Files = append(t.Files, file)
	if !q.known[q.repo][file] {
		t.Cold++
	}
}

// beginning is the start of a prompt on one line, redacted.
func beginning(text string, filter *redact.Filter) string {
	text, _ = filter.Head(strings.Join(strings.Fields(text), " "), 80)
	return text
}
