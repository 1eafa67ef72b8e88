package continuity

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
)

// event is one event of a transcript.
type event struct {
	observation.Event
	folder string      // checkout of its working directory, as named in the transcript
	branch string      // Git branch, "" if the transcript does not contain it
	repo   *repository // repository of its working directory
}

// session is one conversation: its own events, ordered by time.
type session struct {
	id     string
	start  time.Time
	events []*event
}

// firstPrompt returns the first text that the user typed, or nil if the user typed nothing.
func (s *session) firstPrompt() *event {
	for _, e := range s.events {
		if e.Kind == observation.Prompt && e.AgentID == "" {
			return e
		}
	}
	return nil
}

// readFolder decodes all transcripts below dir concurrently. It returns their events file by
// file, with originals before their copies.
func readFolder(ctx context.Context, dir string) ([]event, error) {
	files, err := harnesses.TranscriptFiles(ctx, dir)
	if err != nil {
		return nil, err
	}
	read := make([][]event, len(files))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, path := range files {
		group.Go(func() (err error) {
			read[i], err = readFile(ctx, path)
			return err
		})
	}
	err = group.Wait()
	return slices.Concat(read...), err
}

// readFile decodes one transcript. An event without a time gets the time of the previous event.
func readFile(ctx context.Context, path string) (events []event, err error) {
	branches, err := readBranches(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var last time.Time
	_, err = harnesses.ReadTranscript(ctx, f, harness.TranscriptOptions{Path: path}, func(e observation.Event) error {
		if e.At.IsZero() {
			e.At = last
		}
		last = e.At
		events = append(events, event{Event: e, branch: branches[e.LineID]})
		return nil
	})
	return events, err
}

// readBranches returns the branch of every line that has an id and a branch.
func readBranches(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	branches := map[string]string{}
	for lines := bufio.NewReaderSize(f, 1<<20); ; {
		line, err := lines.ReadBytes('\n')
		if bytes.Contains(line, []byte(`"gitBranch":"`)) {
			var l struct {
				ID     string `json:"uuid"`
				Branch string `json:"gitBranch"`
			}
			if json.Unmarshal(line, &l) == nil && l.ID != "" {
				branches[l.ID] = l.Branch
			}
		}
		if errors.Is(err, io.EOF) {
			return branches, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// withoutCopies drops every event that an earlier session contains, and duplicates within a
// session.
func withoutCopies(events []event) []event {
	seen := map[string]bool{}
	return slices.DeleteFunc(events, func(e event) bool {
		known := false
		for _, name := range e.names() {
			known = known || seen[name]
		}
		for _, name := range e.names() {
			seen[name] = true
		}
		return known
	})
}

// names returns the keys by which copies of the event are recognised.
func (e *event) names() (names []string) {
	if e.Kind == observation.Tool {
		for _, c := range e.Calls {
			if c.ID != "" {
				names = append(names, "call "+c.ID)
			}
		}
		return slices.Compact(names)
	}
	if e.LineID != "" {
		names = append(names, "line "+strconv.Itoa(int(e.Kind))+" "+e.LineID)
	}
	return append(names, "text "+strconv.Itoa(int(e.Kind))+" "+e.At.Format(time.RFC3339Nano)+" "+e.Text)
}

// sessionsOf groups events that are ordered by time. It returns the sessions in the order of
// their starts.
func sessionsOf(events []event) (sessions []*session) {
	byID := map[string]*session{}
	for i := range events {
		e := &events[i]
		s := byID[e.Session]
		if s == nil {
			s = &session{id: e.Session, start: e.At}
			byID[e.Session] = s
			sessions = append(sessions, s)
		}
		s.events = append(s.events, e)
	}
	return sessions
}
