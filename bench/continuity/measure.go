package continuity

import (
	"context"
	"slices"
	"strings"
	"time"

	"cairn/internal/observation"
	"cairn/internal/redact"
)

// Top is the number of named files that count.
const Top = 20

// The moments at which a session is measured.
const (
	atStart  = "start"
	atPrompt = "first prompt"
)

// Session is the result of one session.
type Session struct {
	ID      string    `json:"session"`
	Start   time.Time `json:"start"`
	Project string    `json:"project"`
	First   bool      `json:"first,omitempty"` // no file of the project was known before
	Prompt  string    `json:"prompt"`          // beginning of the first prompt, redacted
	Moments []Moment  `json:"moments"`
}

// Moment is one comparison within a session.
type Moment struct {
	When    string    `json:"when"` // start or first prompt
	At      time.Time `json:"at"`
	Edited  Truth     `json:"edited"`
	Touched Truth     `json:"touched"`
	Answers []Answer  `json:"answers"`

	Sections []Section `json:"sections"` // of the text that is injected at this moment
	Text     string    `json:"text"`     // injected at this moment
}

// Truth lists the files that a session touches afterwards, in the order of the session.
type Truth struct {
	Files []string `json:"files"`
	Cold  []string `json:"cold"` // files that nothing stored names
}

// Answer is the result of one namer.
type Answer struct {
	Namer   string   `json:"namer"`
	Named   []string `json:"named"` // distinct, at most 20 unless every file counts
	Tokens  int      `json:"tokens"`
	Edited  []string `json:"hits_edited"`
	Touched []string `json:"hits_touched"`
}

// asking is the state of a session between its moments.
type asking struct {
	*session
	out  Session
	told answer // injected text of the start
}

// measure queries the namers for every session that starts between from and until. A zero time
// means no limit. All other sessions are only stored.
func (r *replay) measure(ctx context.Context, sessions []*session, from, until time.Time) ([]Session, error) {
	type moment struct {
		*asking
		event *event
		when  string
	}
	span := period{from: from, until: until}
	var moments []moment
	var asked []*asking
	for _, s := range sessions {
		if !span.holds(s.start) {
			continue
		}
		a := &asking{session: s, out: Session{ID: s.id, Start: s.start, Project: s.events[0].repo.name}}
		asked = append(asked, a)
		moments = append(moments, moment{a, s.events[0], atStart})
		if p := s.firstPrompt(); p != nil {
			a.out.Prompt = beginning(p.Text, r.filter)
			moments = append(moments, moment{a, p, atPrompt})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return a.event.At.Compare(b.event.At) })
	for _, m := range moments {
		if err := r.moment(ctx, m.asking, m.event, m.when); err != nil {
			return nil, err
		}
	}
	out := make([]Session, len(asked))
	for i, a := range asked {
		out[i] = a.out
	}
	return out, nil
}

// moment queries all namers at one moment of a session.
func (r *replay) moment(ctx context.Context, s *asking, e *event, when string) error {
	q, err := r.ask(ctx, e)
	if err != nil {
		return err
	}
	if when == atPrompt {
		q.prompt, q.told = e.Text, s.told
	} else {
		s.out.First = len(r.known[q.repo]) == 0
	}
	m := Moment{When: when, At: e.At}
	m.Edited, m.Touched = s.truth(q, e.At)
	if q.shown, err = q.inject(ctx); err != nil {
		return err
	}
	for _, n := range namers() {
		if n.prompts && when != atPrompt {
			continue
		}
		a, err := n.ask(ctx, q)
		if err != nil {
			return err
		}
		m.add(n, a)
	}
	s.told = q.shown
	m.Text = q.shown.text
	for _, part := range q.shown.sections {
		m.Sections = append(m.Sections, m.section(part))
	}
	s.out.Moments = append(s.out.Moments, m)
	return nil
}

// add stores the first distinct files of a namer's result, and its hits.
func (m *Moment) add(n namer, a answer) {
	out := Answer{Namer: n.name, Named: []string{}, Tokens: a.tokens, Edited: []string{}, Touched: []string{}}
	for _, file := range a.files {
		if (n.all || len(out.Named) < Top) && !slices.Contains(out.Named, file) {
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

// truth returns the files that the session touches from a moment on.
func (s *session) truth(q *question, from time.Time) (edited, touched Truth) {
	edited, touched = newTruth(), newTruth()
	for _, e := range s.events {
		if e.At.Before(from) || e.repo != q.repo {
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

func newTruth() Truth { return Truth{Files: []string{}, Cold: []string{}} }

func (t *Truth) add(file string, q *question) {
	if slices.Contains(t.Files, file) {
		return
	}
	t.Files = append(t.Files, file)
	if !q.known[q.repo][file] {
		t.Cold = append(t.Cold, file)
	}
}

// beginning returns the start of a prompt on one line, redacted.
func beginning(text string, filter *redact.Filter) string {
	text, _ = filter.Head(strings.Join(strings.Fields(text), " "), 80)
	return text
}
