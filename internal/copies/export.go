package copies

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"cairn/internal/exchange"
	"cairn/internal/fault"
	"cairn/internal/mail/documents"
	"cairn/internal/memory/items"
	"cairn/internal/observation/transfer"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/store"
)

// ExportArgs selects what to export.
type ExportArgs struct {
	Project string // id or alias; "" for the project of the working directory
	All     bool   // all projects
	Version string // of this program, for the header

	// Progress, if set, is called with the number of written lines and of all lines.
	Progress func(done, lines int)
}

// ExportReport describes an export.
type ExportReport struct {
	Projects []string       `json:"projects"`
	Lines    int            `json:"lines"`  // without header and trailer
	Counts   map[string]int `json:"counts"` // of the lines, by kind
	Seconds  float64        `json:"seconds"`
}

// Export writes projects with all their data, as of one moment, in the format of
// internal/exchange/FORMAT.md. here is the working directory. It omits data of this
// machine: progress of transcripts, the ledger of injections, processes, keys. It does
// not block writers and holds one line at a time in memory.
//
// Errors: NotFound for an unknown project, or if the working directory has none; those of
// w and of reading. After an error the output is not a valid export.
func Export(ctx context.Context, s *store.Store, here project.Location, w io.Writer, a ExportArgs) (r ExportReport, err error) {
	began := time.Now()
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		x := exporter{ExportArgs: a, report: &r}
		if x.scope, err = scopeOf(ctx, tx, here, a); err != nil {
			return err
		}
		return x.run(ctx, tx, w)
	})
	r.Seconds = time.Since(began).Seconds()
	return r, err
}

// ExportTo is Export into a file that only its owner may read. It writes the file
// atomically and replaces an existing one. Errors are those of Export, exchange.Create
// and the system.
func ExportTo(ctx context.Context, s *store.Store, here project.Location, path string, a ExportArgs) (ExportReport, error) {
	f, err := exchange.Create(path)
	if err != nil {
		return ExportReport{}, err
	}
	r, err := Export(ctx, s, here, f, a)
	if err != nil {
		return r, errors.Join(err, f.Discard())
	}
	return r, f.Commit()
}

// scopeOf returns the projects to export.
func scopeOf(ctx context.Context, tx *store.Tx, here project.Location, a ExportArgs) (project.Scope, error) {
	if a.All {
		return project.Scope{}, nil
	}
	if a.Project == "" {
		q, ok, err := project.Current(ctx, tx, here)
		if err == nil && !ok {
			err = fault.New(fault.NotFound, project.CodeNotFound, "the working directory has no project").
				WithHint("use --project or --all")
		}
		return project.ScopeOf(q), err
	}
	q, ok, err := project.Find(ctx, tx, a.Project)
	if err == nil && !ok {
		err = project.NotFound(a.Project)
	}
	return project.ScopeOf(q), err
}

// kindProject is the kind of lines that contain a project.Exported.
const kindProject = "project"

// exporter is one running export.
type exporter struct {
	ExportArgs
	scope  project.Scope
	report *ExportReport
	keys   []int64 // of sessions with rows in the scope
	out    *exchange.Writer
	total  int
}

func (x *exporter) run(ctx context.Context, tx *store.Tx, w io.Writer) (err error) {
	h, err := x.header(ctx, tx)
	if err != nil {
		return err
	}
	if x.out, err = exchange.NewWriter(w, h); err != nil {
		return err
	}
	for _, part := range []func() error{
		func() error {
			return project.EachExported(ctx, tx, x.scope, func(e project.Exported) error { return x.put(kindProject, e) })
		},
		func() error { return transfer.Export(ctx, tx, x.scope, x.keys, x.put) },
		func() error { return histories.Export(ctx, tx, x.scope, x.put) },
		func() error { return documents.Export(ctx, tx, x.scope, x.put) },
		func() error { return items.ExportLines(ctx, tx, x.scope, x.put) },
		func() error { return transfer.ExportForgotten(ctx, tx, x.put) },
		x.out.Close,
	} {
		if err := errors.Join(ctx.Err(), part()); err != nil {
			return err
		}
	}
	x.report.Projects, x.report.Counts, x.report.Lines = h.Projects, h.Counts, x.total
	return nil
}

func (x *exporter) put(kind string, v any) error {
	if err := x.out.Put(kind, v); err != nil {
		return err
	}
	if x.Progress != nil && x.out.Lines()%1000 == 0 {
		x.Progress(x.out.Lines(), x.total)
	}
	return nil
}

// header counts the lines to be written.
func (x *exporter) header(ctx context.Context, tx *store.Tx) (exchange.Header, error) {
	h := exchange.Header{Cairn: x.Version, At: tx.Now().UTC().Truncate(time.Second), All: x.All, Projects: []string{}}
	rows, err := transfer.SessionKeys(ctx, tx, x.scope)
	if err != nil {
		return h, err
	}
	records, err := record.SessionKeys(ctx, tx, x.scope)
	if err != nil {
		return h, err
	}
	reserving, err := documents.SessionKeys(ctx, tx, x.scope)
	if err != nil {
		return h, err
	}
	x.keys = slices.Concat(rows, records, reserving)
	if h.Counts, err = histories.CountExported(ctx, tx, x.scope); err != nil {
		return h, err
	}
	letters, err := documents.CountExported(ctx, tx, x.scope)
	if err != nil {
		return h, err
	}
	memories, err := items.CountLines(ctx, tx, x.scope)
	if err != nil {
		return h, err
	}
	maps.Copy(h.Counts, letters)
	maps.Copy(h.Counts, memories)
	count := func(kind string, n int) {
		if n > 0 {
			h.Counts[kind] = n
		}
	}
	projects, sessions, err := project.CountExported(ctx, tx, x.scope, x.keys)
	if err != nil {
		return h, err
	}
	observations, forgotten, err := transfer.CountExported(ctx, tx, x.scope)
	if err != nil {
		return h, err
	}
	count(kindProject, projects)
	count(transfer.KindSession, sessions)
	count(transfer.KindObservation, observations)
	count(transfer.KindForgotten, forgotten)
	for n := range maps.Values(h.Counts) {
		x.total += n
	}
	err = project.EachExported(ctx, tx, x.scope, func(e project.Exported) error {
		if e.MergedInto == "" {
			h.Projects = append(h.Projects, e.ID)
		}
		return nil
	})
	slices.Sort(h.Projects)
	return h, err
}
