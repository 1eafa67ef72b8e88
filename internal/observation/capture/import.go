package capture

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// The limits of one import transaction, so that it does not block live hooks for long
// (observations §12).
const (
	maxImportRows = 500
	maxImportTime = 50 * time.Millisecond
)

// Prepared is an imported event after the processing that needs no transaction.
type Prepared struct {
	event  observation.Event
	place  project.Location
	drafts []draft
}

// Imported counts the results of an import.
type Imported struct {
	Added   int            `json:"added"`   // rows
	Known   int            `json:"known"`   // calls and prompts that were already stored
	Deduped int            `json:"deduped"` // reads and searches dropped because an equal recent one exists
	Outside int            `json:"outside"` // events before Since or of other projects
	Purged  int            `json:"purged"`  // rows not stored because they were purged before
	ByType  map[string]int `json:"by_type"` // rows added
}

// Importer stores the events of transcripts that a Preparer has prepared. It is not safe for
// concurrent use.
type Importer struct {
	service    *observation.Service
	options    ImportOptions
	queue      []Prepared
	touched    map[string]bool     // ids of the file's sessions whose digests must be updated
	callCounts sessionCounts       // of the file
	absent     map[string][]string // ids of the projects of purged sessions, by session id
	counts     Imported
}

// ImportOptions restrict an import.
type ImportOptions struct {
	Since   time.Time // skip events before it; zero: no limit
	Project string    // id or alias; skip events of other projects; "": all projects

	IncludePurged bool // also store data that was purged
}

// narrow reports whether the options skip any events.
func (o ImportOptions) narrow() bool { return !o.Since.IsZero() || o.Project != "" }

// NewImporter returns an importer.
func NewImporter(svc *observation.Service, o ImportOptions) *Importer {
	return &Importer{
		service: svc, options: o, touched: map[string]bool{}, absent: map[string][]string{},
		callCounts: sessionCounts{max(0, o.Since.Unix()), map[string]*callCounts{}},
		counts:     Imported{ByType: map[string]int{}},
	}
}

// Preparer does the work of storing a transcript's events that needs no transaction. It is not
// safe for concurrent use.
type Preparer struct {
	service *observation.Service
	place   project.Location // of the latest event
	cwd     string           // the working directory of place
}

// NewPreparer returns a Preparer for the events of one transcript.
func NewPreparer(svc *observation.Service) *Preparer { return &Preparer{service: svc} }

// Prepare redacts and cuts an event and determines its location, which is the expensive part of
// storing it.
func (p *Preparer) Prepare(e observation.Event) (Prepared, error) {
	if e.Cwd != p.cwd {
		place, err := project.Locate(e.Cwd, p.service.Config.Home)
		if err != nil {
			return Prepared{}, err
		}
		p.place, p.cwd = place.After(p.place), e.Cwd
	}
	rows := drafts(&e, p.service.Config.Filter)
	keepOutputs(p.service, rows)
	e.Branch, _ = p.service.Config.Filter.Head(e.Branch, maxFact)
	return Prepared{event: e, place: p.place, drafts: rows}, nil
}

// Add queues an event. When the queue is full, it stores the queued events.
func (i *Importer) Add(ctx context.Context, p Prepared) error {
	if p.event.At.Before(i.options.Since) {
		i.counts.Outside++
		return nil
	}
	i.queue = append(i.queue, p)
	if len(i.queue) < maxImportRows {
		return nil
	}
	return i.flush(ctx)
}

// flush stores the queue in one or more transactions, depending on the limits.
func (i *Importer) flush(ctx context.Context) error {
	for len(i.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		var batch importBatch
		err := i.service.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
			batch = importBatch{Importer: i}
			return batch.store(ctx, tx)
		})
		if err != nil {
			return err
		}
		i.queue = i.queue[batch.taken:]
		i.counts.Add(batch.counts)
		for _, id := range batch.touched {
			i.touched[id] = true
		}
	}
	return nil
}

// Add adds the counts of another import. ByType must not be nil.
func (c *Imported) Add(d Imported) {
	c.Added += d.Added
	c.Known += d.Known
	c.Deduped += d.Deduped
	c.Outside += d.Outside
	c.Purged += d.Purged
	for t, n := range d.ByType {
		c.ByType[t] += n
	}
}

// importBatch is the result of one transaction. It counts only after the commit.
type importBatch struct {
	*Importer
	taken    int
	counts   Imported
	touched  []string // ids
	sessions map[importedKey]*importedSession
}

func (b *importBatch) store(ctx context.Context, tx *store.Tx) error {
	b.counts.ByType = map[string]int{}
	b.sessions = map[importedKey]*importedSession{}
	began := time.Now()
	var dead observation.Tombstones
	if !b.options.IncludePurged {
		var err error
		if dead, err = observation.OpenTombstones(ctx, tx); err != nil {
			return err
		}
	}
	for b.taken < len(b.queue) && (b.taken == 0 || b.counts.Added < maxImportRows && time.Since(began) < maxImportTime) {
		p := b.queue[b.taken]
		b.taken++
		wanted, err := b.wanted(ctx, tx, p)
		if err != nil {
			return err
		}
		if !wanted {
			b.counts.Outside++
			continue
		}
		w := &writing{
			event: p.event, place: p.place, at: p.event.At.Unix(), window: int64(b.service.Config.DedupWindow.Seconds()),
			counts: b.callCounts, tombstones: dead, absent: b.absent,
		}
		rows, gone, err := w.dropPurged(ctx, tx, p.drafts)
		if err == nil && !gone {
			if err = b.findSession(ctx, tx, w); err == nil {
				err = w.store(ctx, tx, rows)
			}
		}
		if err != nil {
			return err
		}
		b.counts.Added += len(w.done.IDs)
		b.counts.Known += w.done.Known
		b.counts.Deduped += w.done.Deduped
		b.counts.Purged += w.done.Purged
		for _, t := range w.done.Types {
			b.counts.ByType[t]++
		}
		// Known events count too: an interrupted import may not have updated the digests.
		if w.session.Key != 0 {
			b.touched = append(b.touched, w.session.ID)
		}
	}
	return b.touchSessions(ctx, tx)
}

// wanted reports whether an event belongs to the requested project.
func (b *importBatch) wanted(ctx context.Context, tx *store.Tx, p Prepared) (bool, error) {
	name := b.options.Project
	if name == "" || p.place.Slug == name {
		return true, nil
	}
	asked, ok, err := project.Find(ctx, tx, name)
	if err != nil || !ok {
		return false, err
	}
	own, ok, err := project.Current(ctx, tx, p.place)
	return ok && own.Key == asked.Key, err
}

// ImportedFile records how far a transcript was read.
type ImportedFile struct {
	Path   string
	Size   int64
	MTime  int64 // Unix nanoseconds
	Offset int64 // where reading continues after the file has grown
}

// EndFile stores the queued events and the digests of the file's sessions. It returns the counts
// since the last call. If whole is true and the options skip no events, it also records how far
// the file was read, so that it is not read again.
func (i *Importer) EndFile(ctx context.Context, f ImportedFile, whole bool) (Imported, error) {
	if err := i.flush(ctx); err != nil {
		return Imported{}, err
	}
	err := i.service.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for id := range i.touched {
			s, ok, err := project.FindSession(ctx, tx, id) // a purge may have deleted it meanwhile
			if err == nil && ok {
				err = observation.WriteDigest(ctx, tx, s)
			}
			if err != nil {
				return err
			}
		}
		if !whole || i.options.narrow() {
			return nil
		}
		_, err := tx.Exec(ctx, upsertImport, f.Path, f.Size, f.MTime, f.Offset)
		return err
	})
	done := i.counts
	clear(i.touched)
	clear(i.callCounts.of)
	i.counts = Imported{ByType: map[string]int{}}
	return done, err
}

// FindImportedFile returns how far a transcript was read; ok is false if it never was.
func FindImportedFile(ctx context.Context, svc *observation.Service, path string) (f ImportedFile, ok bool, err error) {
	f.Path = path
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		err := tx.Get(ctx, []any{&f.Size, &f.MTime, &f.Offset}, selectImport, path)
		ok = err == nil
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return f, ok, err
}

// Roots returns the root folders of the stored projects. They serve transcripts that encode
// their folder in a form that cannot be decoded unambiguously.
func Roots(ctx context.Context, svc *observation.Service) (roots []string, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		list, err := project.List(ctx, tx)
		for _, p := range list {
			if p.Root != "" {
				roots = append(roots, p.Root)
			}
		}
		return err
	})
	return roots, err
}
