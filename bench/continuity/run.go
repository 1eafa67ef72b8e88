package continuity

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"cairn/internal/redact"
)

// Options sets what to measure.
type Options struct {
	Dir         string    // folder of the transcripts
	From, Until time.Time // range of session starts that are measured; zero means no limit
	Machines    bool      // every home folder is a machine with a separate store
	Dump        string    // file for the shortened events, "" for none
}

// Report contains all results of a run.
type Report struct {
	Events   int             `json:"events"`   // number without copies
	Copies   int             `json:"copies"`   // ignored copies
	Figures  []Figure        `json:"figures"`  // by period, moment and namer
	Sections []SectionFigure `json:"sections"` // sections of the injected text, by period and moment
	Sessions []Session       `json:"sessions"` // measured sessions, in the order of their starts
}

// Run replays the transcripts and measures at every start of a session. With a dump it only
// writes the dump. If the folder has no transcripts, it returns an error of
// harness.TranscriptFiles or an empty report.
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
	events := withoutCopies(slices.Clone(all))
	r.Events, r.Copies = len(events), len(all)-len(events)
	filter, err := redact.New(redact.Options{})
	if err != nil {
		return r, err
	}
	machines := [][]event{events}
	if o.Machines {
		machines = byHome(events)
	}
	var prepared []event
	for i, own := range machines {
		dir := filepath.Join(dir, strconv.Itoa(i))
		if err := fold(dir, own); err != nil {
			return r, err
		}
		if o.Dump != "" {
			prepared = append(prepared, own...)
			continue
		}
		sessions, err := measure(ctx, dir, own, o, filter)
		if err != nil {
			return r, err
		}
		r.Sessions = append(r.Sessions, sessions...)
	}
	if o.Dump != "" {
		inTime(prepared)
		return r, dump(o.Dump, prepared, filter)
	}
	slices.SortStableFunc(r.Sessions, func(a, b Session) int { return a.Start.Compare(b.Start) })
	spans := periods(r.Sessions, o.From, o.Until)
	r.Figures, r.Sections = figures(r.Sessions, spans), sectionFigures(r.Sessions, spans)
	return r, nil
}

// measure replays the events of one machine into a separate store.
func measure(ctx context.Context, dir string, events []event, o Options, filter *redact.Filter) (list []Session, err error) {
	r, err := newReplay(ctx, dir, filter, events)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return r.measure(ctx, sessionsOf(events), o.From, o.Until)
}

// byHome groups events by the home folder in which they happened. Groups are in the order of
// their first events.
func byHome(events []event) (homes [][]event) {
	place := map[string]int{}
	for _, e := range events {
		home := homeOf(e.Cwd)
		i, ok := place[home]
		if !ok {
			i = len(homes)
			place[home] = i
			homes = append(homes, nil)
		}
		homes[i] = append(homes[i], e)
	}
	return homes
}

// homeOf returns the customary home folder that contains a path, or "" for any other path.
func homeOf(path string) string {
	parts := strings.SplitN(path, "/", 4)
	if len(parts) < 3 || parts[0] != "" || parts[1] != "Users" && parts[1] != "home" {
		return ""
	}
	return strings.Join(parts[:3], "/")
}

// fold moves events into the repositories of their checkouts, created below dir, and sorts them
// by time.
func fold(dir string, events []event) error {
	f, err := newFolders(dir, events)
	if err != nil {
		return err
	}
	for i := range events {
		f.move(&events[i])
	}
	inTime(events)
	return nil
}

func inTime(events []event) {
	slices.SortStableFunc(events, func(a, b event) int { return a.At.Compare(b.At) })
}
