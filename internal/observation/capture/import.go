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

// An import's transactions end after so many rows or so much time, so that a
// live hook never waits on it (observations §12).
const (
	maxImportRows = 500
	maxImportTime = 50 * time.Millisecond
)

// Prepared is an imported event with the work done that needs no transaction.
type Prepared struct {
	event  observation.Event
	place  project.Location
	drafts []draft
}

// Imported counts what an import did.
type Imported struct {
	Added   int            `json:"added"`   // rows
	Known   int            `json:"known"`   // calls and prompts that were stored before
	Deduped int            `json:"deduped"` // reads and searches equal to a recent one
	Outside int            `json:"outside"` // events before Since or of other projects
	Purged  int            `json:"purged"`  // rows that were purged before and do not come back
	ByType  map[string]int `json:"by_type"` // rows added
}

// Importer stores the events of transcripts, which a Preparer has prepared. It is
// used by one goroutine.
type Importer struct {
	service    *observation.Service
	options    ImportOptions
	queue      []Prepared
	touched    map[string]bool     // ids of the file's sessions; their digests are due
	callCounts sessionCounts       // of the file
	absent     map[string][]string // ids of the projects of sessions that were purged
	counts     Imported
}

// ImportOptions narrow an import.
type ImportOptions struct {
	Since   time.Time // events before it are left out; zero for all
	Project string    // id or alias; events of other projects are left out; "" for all

	IncludePurged bool // store also what was purged
}

// narrow reports whether events are left out.
func (o ImportOptions) narrow() bool { return !o.Since.IsZero() || o.Project != "" }

// NewImporter returns an importer.
func NewImporter(svc *observation.Service, o ImportOptions) *Importer {
	return &Importer{
		service: svc, options: o, touched: map[string]bool{}, absent: map[string][]string{},
		callCounts: sessionCounts{max(0, o.Since.Unix()), map[string]*callCounts{}},
		counts:     Imported{ByType: map[string]int{}},
	}
}

// Preparer does what storing a transcript's events takes but for the
// transactions. It is used by one goroutine.
type Preparer struct {
	service *observation.Service
	place   project.Location // of the latest event
	cwd     string           // which it is of
}

// NewPreparer returns what prepares the events of one transcript.
func NewPreparer(svc *observation.Service) *Preparer { return &Preparer{service: svc} }

// Prepare redacts, cuts and places an event, the costly part of storing it.
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

// Add queues an event and stores what is queued when it is enough for a
// transaction.
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

// flush stores the queue, in as many transactions as its limits make.
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

// Add takes in what another import did; ByType must not be nil.
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

// importBatch is what one transaction did; it counts only if it is committed.
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
		// Also of what was known: an import that was killed left its digests undone.
		if w.session.Key != 0 {
			b.touched = append(b.touched, w.session.ID)
		}
	}
	return b.touchSessions(ctx, tx)
}

// wanted reports whether an event belongs to the project that was asked for.
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

// ImportedFile is how far a transcript has been read.
type ImportedFile struct {
	Path   string
	Size   int64
	MTime  int64 // Unix nanoseconds
	Offset int64 // where reading goes on when the file has grown
}

// EndFile stores what is queued and the digests of the file's sessions, and
// returns the counts since the last call. If the whole file was wanted
// and read, it also keeps how far that was, so that it is not read again.
func (i *Importer) EndFile(ctx context.Context, f ImportedFile, whole bool) (Imported, error) {
	if err := i.flush(ctx); err != nil {
		return Imported{}, err
	}
	err := i.service.Store.Write(ctx, store.Normal, func(ctx context.Context, tx *store.Tx) error {
		for id := range i.touched {
			s, ok, err := project.FindSession(ctx, tx, id) // a purge may have taken it meanwhile
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

// FindImportedFile is how far a transcript was read before; ok is false if never.
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

// Roots are the folders of the projects that are stored, for transcripts that
// tell theirs in a form from which it cannot be read back.
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
