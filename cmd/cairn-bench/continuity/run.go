package continuity

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/redact"
)

// Options say what to measure.
type Options struct {
	Dir         string    // of the transcripts
	From, Until time.Time // starts of the sessions that are asked; zero for no bound
	Dump        string    // the file for the reduced events, "" for none
}

// Report is everything that a run found.
type Report struct {
	Events   int       `json:"events"`   // without copies
	Copies   int       `json:"copies"`   // that were left out
	Figures  []Figure  `json:"figures"`  // by period, moment and namer
	Sessions []Session `json:"sessions"` // that were asked, in the order of their starts
}

// Run replays the transcripts and asks at every start of a session. With a dump
// it only writes that. A folder without transcripts is an error of
// harness.TranscriptFiles, or gives an empty report.
func Run(ctx context.Context, o Options) (r Report, err error) {
	all, err := readFolder(ctx, o.Dir)
	if err != nil {
		return r, err
	}
	dir, err := os.MkdirTemp("", "cairn-continuity-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return r, err
	}
	read := len(all)
	events, err := prepare(dir, all)
	if err != nil {
		return r, err
	}
	r.Events, r.Copies = len(events), read-len(events)
	filter, err := redact.New(redact.Options{})
	if err != nil {
		return r, err
	}
	if o.Dump != "" {
		return r, dump(o.Dump, events, filter)
	}
	replay, err := newReplay(ctx, dir, filter, events)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(replay.close(), err) }()
	r.Sessions, err = replay.measure(ctx, sessionsOf(events), o.From, o.Until)
	r.Figures = figures(r.Sessions, periods(r.Sessions, o.From, o.Until))
	return r, err
}

// prepare drops copies, folds checkouts and puts events in the order of time.
func prepare(dir string, events []event) ([]event, error) {
	events = withoutCopies(events)
	f, err := newFolders(dir, events)
	if err != nil {
		return nil, err
	}
	for i := range events {
		f.move(&events[i])
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	return events, nil
}
