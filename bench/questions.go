package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/bench/workload"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
	"cairn/internal/observation/assist"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/capture"
	"cairn/internal/observation/search"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// inventedSessions contains sessions, each followed by its questions. The first character
// of a line is its type:
//
//	==  a session: project, day, the file that it is about
//	>   a prompt      $  a command      |  its output      !  it failed
//	~   an edit       <  the reply     +  a commit
//	?   a question that the session answers: its kind, the sentence // its keywords
//	--  a chore, a prompt of the sessions in between
//
//go:embed questions.txt
var inventedSessions string

// story is one session of the file.
type story struct {
	id, project, file string
	at                time.Time
	steps             []string // lines of the file
	questions         []inventedQuestion
}

type inventedQuestion struct {
	kind, sentence, keywords string
	answer                   string // id of the session
}

// questionKinds returns the kinds in the order of the table.
func questionKinds() []string { return []string{"plain", "other", "time", "output"} }

// askedAt returns the time of the questions. Times in them are relative to it.
func askedAt() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.Local) }

// readStories parses a file of sessions. Each is followed by a chore in the same project on the
// next day.
func readStories(text string) (all []story, err error) {
	var chores []string
	for line := range strings.Lines(text) {
		mark, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch mark {
		case "", "#":
		case "--":
			chores = append(chores, rest)
		case "==":
			f := strings.Fields(rest)
			day, err := time.ParseInLocation(time.DateOnly, f[1], time.Local)
			if err != nil {
				return nil, err
			}
			all = append(all, story{id: storyID(2 * len(all)), project: f[0], file: f[2], at: day.Add(9*time.Hour + 12*time.Minute)})
		case "?":
			s := &all[len(all)-1]
			kind, rest, _ := strings.Cut(rest, " ")
			sentence, keywords, _ := strings.Cut(rest, " // ")
			s.questions = append(s.questions, inventedQuestion{kind, sentence, keywords, s.id})
		default:
			s := &all[len(all)-1]
			s.steps = append(s.steps, strings.TrimSuffix(line, "\n"))
		}
	}
	for i, s := range slices.Clone(all) {
		all = append(all, s.chore(chores[i%len(chores)], 2*i+1))
	}
	return all, nil
}

// storyID returns the id of the n-th session.
func storyID(n int) string { return fmt.Sprintf("5e55%04x-0000-4000-8000-%012x", n, n) }

// chore returns an everyday session about the same file.
func (s *story) chore(prompt string, n int) story {
	word, _, _ := strings.Cut(filepath.Base(s.file), ".")
	prompt = strings.NewReplacer("{file}", s.file, "{word}", word).Replace(prompt)
	c := story{id: storyID(n), project: s.project, file: s.file, at: s.at.Add(26 * time.Hour), steps: []string{"> " + prompt, "~ " + s.file}}
	for _, step := range s.steps {
		if strings.HasPrefix(step, "$ ") {
			return story{c.id, c.project, c.file, c.at, append(c.steps, step, "| ok", "< Done, "+word+" is as before and all checks pass."), nil}
		}
	}
	return c
}

// payloads returns the session's steps as hook payloads. Each step takes two minutes.
func (s *story) payloads(root string) (all []workload.HookPayload) {
	at := func(path string) string { return filepath.Join(root, filepath.FromSlash(path)) }
	add := func(p workload.HookPayload) {
		p.Session, p.Cwd, p.ID = s.id, root, fmt.Sprintf("%s-%d", s.id, len(all))
		all = append(all, p)
	}
	for i := 0; i < len(s.steps); i++ {
		switch mark, rest := s.steps[i][:1], s.steps[i][2:]; mark {
		case ">":
			add(workload.HookPayload{Event: "UserPromptSubmit", Prompt: rest})
			add(changeOf(at(s.file)))
		case "~":
			add(changeOf(at(rest)))
		case "<":
			add(workload.HookPayload{Event: "Stop", Message: rest})
		case "+":
			printed := fmt.Sprintf("[main %07x] %s\n 2 files changed, 31 insertions(+), 4 deletions(-)\n", 0xa51c3*(len(rest)+i), rest)
			add(commandOf("git commit -am '"+rest+"'", printed, false))
		case "$":
			var printed []string
			for i+1 < len(s.steps) && s.steps[i+1][0] == '|' {
				i++
				printed = append(printed, strings.TrimPrefix(s.steps[i][1:], " "))
			}
			failed := i+1 < len(s.steps) && s.steps[i+1] == "!"
			if failed {
				i++
			}
			add(commandOf(rest, strings.Join(printed, "\n")+"\n", failed))
		}
	}
	return all
}

func commandOf(command, printed string, failed bool) workload.HookPayload {
	p := workload.HookPayload{Event: "PostToolUse", Tool: "Bash", Input: fieldsOf("command", command)}
	if failed {
		p.Event, p.Error = "PostToolUseFailure", "Exit code 1\n"+printed
		return p
	}
	p.Response = fieldsOf("stdout", printed)
	return p
}

func changeOf(path string) workload.HookPayload {
	return workload.HookPayload{Event: "PostToolUse", Tool: "Edit", Input: fieldsOf("file_path", path), Response: fieldsOf("filePath", path)}
}

// fieldsOf returns a JSON object with one text field.
func fieldsOf(name, value string) json.RawMessage {
	text, _ := json.Marshal(map[string]string{name: value}) // a map of texts always encodes
	return text
}

// inventedStore creates a store of the generated sessions below dir and returns its path.
func inventedStore(ctx context.Context, dir string, stories []story) (path string, err error) {
	path = filepath.Join(dir, "cairn.db")
	return path, withInvented(ctx, path, func(j journal) error {
		importer, preparer := capture.NewImporter(j.Service, capture.ImportOptions{}), capture.NewPreparer(j.Service)
		for _, s := range stories {
			root := filepath.Join(dir, s.project)
			if err := os.MkdirAll(filepath.Join(root, ".git"), 0o700); err != nil {
				return err
			}
			for n, p := range s.payloads(root) {
				text, err := json.Marshal(p)
				if err != nil {
					return err
				}
				e, err := harnesses.Hook(text, "claude", "")
				if err != nil {
					return err
				}
				e.At = s.at.Add(time.Duration(n) * 2 * time.Minute)
				ready, err := preparer.Prepare(e)
				if err == nil {
					err = importer.Add(ctx, ready)
				}
				if err != nil {
					return err
				}
			}
			if _, err := importer.EndFile(ctx, capture.ImportedFile{}, false); err != nil {
				return err
			}
		}
		_, err := j.IndexTurns(ctx, 1<<30)
		return err
	})
}

// withInvented opens a store while fn runs. Its clock is set to the time of the questions, and
// assistance has no short time limit.
func withInvented(ctx context.Context, path string, fn func(j journal) error) error {
	filter, err := redact.New(redact.Options{})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Config{Path: path, Role: store.Server, Clock: askedAt})
	if err != nil {
		return err
	}
	config := observation.Config{Filter: filter, DedupWindow: observation.DefaultDedupWindow, AssistTime: time.Minute, AssistWall: time.Minute}
	return errors.Join(fn(journal{observation.New(s, config), s}), s.Close())
}

// asks is a way to query the generated sessions. It returns the sessions found, best first.
type asks func(ctx context.Context, question, words string) ([]string, error)

// questionLimit is the number of sessions in a result, the default of the tool recall.
const questionLimit = 5

func (j journal) askRecall(ctx context.Context, question, words string) (found []string, err error) {
	r, err := search.Recall(ctx, j.Service, search.RecallArgs{Query: question, Words: words, Limit: questionLimit, Similar: questionLimit})
	for _, s := range search.WithSimilar(r.Sessions, r.Similar, questionLimit) {
		found = append(found, s.SessionID)
	}
	return found, err
}

func (j journal) askSearch(ctx context.Context, question, _ string) (found []string, err error) {
	rows, err := search.Find(ctx, j.Service, search.FindArgs{SearchArgs: search.SearchArgs{Query: strings.ReplaceAll(question, `"`, " "), Limit: 20}})
	for _, r := range rows {
		if !slices.Contains(found, r.SessionID) {
			found = append(found, r.SessionID)
		}
	}
	return found, err
}

// askAssist sends a question as the first prompt of a session in the first project, in a copy
// of the store.
func askAssist(dir, path string) asks {
	return func(ctx context.Context, question, _ string) (found []string, err error) {
		copied := filepath.Join(dir, "asked.db")
		for _, suffix := range []string{"", "-wal", "-shm", "-lock"} {
			if err := os.Remove(copied + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, err
			}
		}
		if err := copyFile(path, copied); err != nil {
			return nil, err
		}
		return found, withInvented(ctx, copied, func(j journal) error {
			e := observation.Event{Kind: observation.Prompt, Session: "asking", Cwd: filepath.Join(dir, "harbor"), Text: question, Source: "UserPromptSubmit", Harness: "claude"}
			place, err := project.Locate(e.Cwd, "")
			if err != nil {
				return err
			}
			done, err := capture.Record(ctx, j.Service, e, place, project.Process{})
			if err != nil {
				return err
			}
			help, err := assist.Help(ctx, j.Service, e, place, done)
			if err != nil {
				return err
			}
			for _, item := range help.Items {
				rows, err := browse.Get(ctx, j.Service, []int64{item.Observation})
				if err != nil {
					return err
				}
				for _, r := range rows {
					if !slices.Contains(found, r.SessionID) {
						found = append(found, r.SessionID)
					}
				}
			}
			return nil
		})
	}
}

// hits counts how well questions were answered.
type hits struct {
	asked, first, five, empty int
	reciprocal                float64 // sum of 1/rank
}

func (h *hits) count(found []string, answer string) {
	h.asked++
	rank := 1 + slices.Index(found, answer)
	if len(found) == 0 {
		h.empty++
	}
	if rank == 0 {
		return
	}
	h.reciprocal += 1 / float64(rank)
	if rank == 1 {
		h.first++
	}
	if rank <= 5 {
		h.five++
	}
}

// share returns n as a share of the questions, or 0 without questions.
func (h *hits) share(n float64) float64 { return n / max(float64(h.asked), 1) }

// String formats hit@1/hit@5.
func (h hits) String() string {
	return fmt.Sprintf("%.2f/%.2f", h.share(float64(h.first)), h.share(float64(h.five)))
}

// inventedForm is a way to ask, with its questions and its results.
type inventedForm struct {
	name  string
	all   hits
	kinds map[string]*hits
}

// ask runs questions in one form and counts the hits.
func (f *inventedForm) ask(ctx context.Context, way asks, questions []inventedQuestion, form func(q *inventedQuestion) (question, words string)) error {
	f.kinds = map[string]*hits{}
	for _, q := range questions {
		question, words := form(&q)
		found, err := way(ctx, question, words)
		if err != nil {
			return fmt.Errorf("%s %q: %w", f.name, question, err)
		}
		if f.kinds[q.kind] == nil {
			f.kinds[q.kind] = &hits{}
		}
		f.all.count(found, q.answer)
		f.kinds[q.kind].count(found, q.answer)
	}
	return nil
}

// pastedLines returns lines that commands of only one session printed, each with its session.
func pastedLines(stories []story) (lines []inventedQuestion) {
	const shortest = 16
	owners := map[string]string{}
	for _, s := range stories {
		for _, step := range s.steps {
			if line, ok := strings.CutPrefix(step, "| "); ok && len(line) >= shortest {
				if owner, known := owners[line]; known && owner != s.id {
					owners[line] = ""
					continue
				}
				owners[line] = s.id
				lines = append(lines, inventedQuestion{kind: "line", sentence: line, answer: s.id})
			}
		}
	}
	return slices.DeleteFunc(lines, func(q inventedQuestion) bool { return owners[q.sentence] == "" })
}

// otherDigits returns a text with each digit replaced by another.
func otherDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0' + (r-'0'+3)%10
		}
		return r
	}, text)
}

// askInvented creates the store of the generated sessions below dir and asks all questions in
// all ways.
func askInvented(ctx context.Context, dir string) (forms []*inventedForm, err error) {
	stories, err := readStories(inventedSessions)
	if err != nil {
		return nil, err
	}
	path, err := inventedStore(ctx, dir, stories)
	if err != nil {
		return nil, err
	}
	var questions []inventedQuestion
	for _, s := range stories {
		questions = append(questions, s.questions...)
	}
	sentence := func(q *inventedQuestion) (string, string) { return q.sentence, "" }
	keywords := func(q *inventedQuestion) (string, string) { return q.keywords, "" }
	both := func(q *inventedQuestion) (string, string) { return q.sentence, q.keywords }
	changed := func(q *inventedQuestion) (string, string) { return otherDigits(q.sentence), "" }
	lines := pastedLines(stories)
	numbers := slices.DeleteFunc(slices.Clone(lines), func(q inventedQuestion) bool { return otherDigits(q.sentence) == q.sentence })
	err = withInvented(ctx, path, func(j journal) error {
		for _, f := range []struct {
			name      string
			way       asks
			questions []inventedQuestion
			form      func(*inventedQuestion) (string, string)
		}{
			{"recall, sentence", j.askRecall, questions, sentence},
			{"recall, keywords", j.askRecall, questions, keywords},
			{"recall, both", j.askRecall, questions, both},
			{"search, sentence", j.askSearch, questions, sentence},
			{"search, keywords", j.askSearch, questions, keywords},
			{"recall, pasted line", j.askRecall, lines, sentence},
			{"recall, with other digits", j.askRecall, numbers, changed},
		} {
			form := &inventedForm{name: f.name}
			if err := form.ask(ctx, f.way, f.questions, f.form); err != nil {
				return err
			}
			forms = append(forms, form)
		}
		return j.store.Checkpoint(ctx)
	})
	if err != nil {
		return nil, err
	}
	help := &inventedForm{name: "help on a prompt"}
	inHarbor := slices.DeleteFunc(slices.Clone(questions), func(q inventedQuestion) bool {
		return !slices.ContainsFunc(stories, func(s story) bool { return s.id == q.answer && s.project == "harbor" })
	})
	return append(forms, help), help.ask(ctx, askAssist(dir, path), inHarbor, sentence)
}

// questionsAsked queries the generated sessions and prints how well they answer.
func (b *bench) questionsAsked(ctx context.Context) error {
	dir := filepath.Join(b.dir, "invented")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return err
	}
	forms, err := askInvented(ctx, dir)
	if err != nil {
		return err
	}
	columns := append([]string{"asked", "hit@1", "hit@5", "MRR", "empty"}, questionKinds()...)
	t := newTable("questions", "invented sessions: how often the session that answers is first, and among the first five", columns...)
	for _, f := range forms {
		cells := []any{f.all.asked, f.all.share(float64(f.all.first)), f.all.share(float64(f.all.five)), f.all.share(f.all.reciprocal), f.all.empty}
		for _, kind := range questionKinds() {
			if h := f.kinds[kind]; h != nil {
				cells = append(cells, h.String())
			} else {
				cells = append(cells, nil)
			}
		}
		t.add(f.name, cells...)
	}
	return b.publish(t)
}
