package continuity

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"cairn/internal/redact"
)

// Options say what to measure.
type Options struct {
	Dir  string // of the transcripts
	Dump string // the file for the reduced events, "" for none
}

// Run replays and measures.
func Run(ctx context.Context, o Options) (err error) {
	events, err := readFolder(ctx, o.Dir)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cairn-continuity-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if events, err = prepare(dir, events); err != nil {
		return err
	}
	if o.Dump != "" {
		filter, err := redact.New(redact.Options{})
		if err != nil {
			return err
		}
		return dump(o.Dump, events, filter)
	}
	return nil
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
