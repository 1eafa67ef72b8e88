package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Folder is a project's folder of the archive as it is to be read.
type Folder struct {
	Name  string   // of the folder, for messages
	Paths []string // of all files below it, with slashes, in any order
	Read  func(ctx context.Context, path string) ([]byte, error)
}

// Reindexed is what a Reindexer did (mail §10.6).
type Reindexed struct {
	Inserted       map[string]int `json:"inserted"`        // how many changes of each kind
	Conflicts      []Unusable     `json:"conflicts"`       // what stands against what is there
	Unparseable    []Unusable     `json:"unparseable"`     // what cannot be read
	NotRecoverable []Unusable     `json:"not_recoverable"` // what could be read and not be applied
}

// Unusable is a file, or a line of one, that was passed over.
type Unusable struct {
	Project string `json:"project"` // the folder's name
	Path    string `json:"path"`    // for a line with a colon and its number, from 1
	Reason  string `json:"reason"`
}

// Reindexer restores the records of a store from its archive: versions, ticks,
// sessions and activity, as the files of history tell them. What the store has wins:
// where a project has records of another history, none of the archive's are taken.
//
// A line that cannot be used is listed and passed over as long as the clock shows no
// gap: what costs no tick may be missing. Nothing is taken from behind a missing
// tick, since the ids, versions and ticks of records cannot be given again; records of
// which pages tell newer versions than could be applied are listed, and no id of a
// page or a line that was passed over is given again.
type Reindexer struct {
	store  *store.Store
	docs   *Documents
	dryRun bool
	out    Reindexed
}

// NewReindexer begins; with dryRun nothing is written and Inserted counts what would
// be. The filter is applied to what is stored.
func NewReindexer(s *store.Store, filter *redact.Filter, dryRun bool) *Reindexer {
	return &Reindexer{store: s, docs: NewDocuments(filter), dryRun: dryRun, out: Reindexed{
		Inserted: map[string]int{}, Conflicts: []Unusable{}, Unparseable: []Unusable{}, NotRecoverable: []Unusable{},
	}}
}

// Result is what became of the folders so far.
func (r *Reindexer) Result() Reindexed { return r.out }

// Add takes over the records of one project from its folder; the project is made if
// it is missing, so import it first for all that is known of it. A folder may be
// added again to another Reindexer, which then finds everything known, also after a
// kill.
//
// Errors: CodeNewerDocument (Unavailable) for changes of a newer cairn; CodeConflict
// if others change the project's records meanwhile; those of the store and of ctx.
// What was listed until then stays listed.
func (r *Reindexer) Add(ctx context.Context, projectID string, f Folder) error {
	g := &gathering{Reindexer: r, folder: f, project: projectID, passed: map[spot]bool{}, added: map[string]int{}}
	g.order()
	err := r.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return g.judge(ctx, tx) })
	if fault.HasCode(err, CodeOtherHistory) || fault.HasCode(err, CodeBothHaveRecords) {
		r.out.Conflicts = append(r.out.Conflicts, Unusable{f.Name, cmp.Or(g.at.String(), historyFolder), err.Error()})
		return nil
	}
	if err == nil && !r.dryRun {
		err = g.take(ctx)
	}
	if err != nil {
		return err
	}
	for kind, n := range g.added {
		r.out.Inserted[kind] += n
	}
	return nil
}

// gathering is one folder on its way into the store.
type gathering struct {
	*Reindexer
	folder  Folder
	project string
	files   []string // of history, in order
	at      spot     // where a line is read
	passed  map[spot]bool
	end     spot // the first line that is not taken, and with it all behind it; zero for none
	added   map[string]int
	highest int64 // number of a record of which the folder tells
}

// spot is a line of a file, counted from 1; 0 is the file.
type spot struct {
	path string
	line int
}

func (s spot) String() string {
	if s.line == 0 {
		return s.path
	}
	return fmt.Sprintf("%s:%d", s.path, s.line)
}

func (g *gathering) unparseable(at spot, why error) {
	g.out.Unparseable = append(g.out.Unparseable, Unusable{g.folder.Name, at.String(), why.Error()})
}

func (g *gathering) notRecoverable(at spot, why string) {
	g.out.NotRecoverable = append(g.out.NotRecoverable, Unusable{g.folder.Name, at.String(), why})
}

// order finds the files of history, and which are missing between them.
func (g *gathering) order() {
	type numbered struct {
		folder, file int64
		path         string
	}
	var list []numbered
	for _, path := range g.folder.Paths {
		if folder, file, ok := parseHistoryPath(path); ok {
			list = append(list, numbered{folder, file, path})
		}
	}
	slices.SortFunc(list, func(a, b numbered) int { return cmp.Or(cmp.Compare(a.folder, b.folder), cmp.Compare(a.file, b.file)) })
	last := numbered{folder: 0, file: -1}
	for _, n := range list {
		missing := historyPath(last.folder, last.file+1)
		if n.folder > last.folder && n.file > 0 || n.folder > last.folder+1 {
			missing = historyPath(last.folder+1, 0)
		}
		if next := n.file == 0 && n.folder == last.folder+1 || n.folder == last.folder && n.file == last.file+1; !next {
			g.unparseable(spot{path: missing}, errors.New("this file of the history is missing"))
		}
		g.files = append(g.files, n.path)
		last = n
	}
}

// each calls fn with the lines of the history; why reports what is wrong with one, and
// with a file that cannot be read.
func (g *gathering) each(ctx context.Context, fn func(l *line, why error) error) error {
	for _, path := range g.files {
		g.at = spot{path: path}
		content, err := g.folder.Read(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if err := fn(nil, err); err != nil {
				return err
			}
			continue
		}
		for text := range bytes.Lines(content) {
			g.at.line++
			l, why := readLine(text)
			if why == nil {
				l.Project = g.project // whatever it was called when the line was written
			}
			if err := fn(l, why); err != nil {
				return err
			}
		}
	}
	g.at = spot{}
	return ctx.Err()
}

// readLine reads a line of history. Its document is nil if it was forgotten.
func readLine(text []byte) (*line, error) {
	l := &line{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, errors.New("it is no whole line of JSON")
	}
	if sum, err := l.sum(); err != nil || sum != l.SHA256 {
		return nil, errors.New("it is not what its sha256 says")
	}
	if l.Kind != KindRecord && l.Kind != KindEvent {
		return nil, fmt.Errorf("its kind %.40q is not one of records", l.Kind)
	}
	switch string(l.Doc) {
	case "":
		return l, l.Check()
	case "null":
		l.Doc = nil
	}
	doc := l.document()
	return l, doc.Validate()
}

func (l *line) document() Document {
	return Document{Exported: l.Exported, DocSHA256: l.DocSHA256, Tick: l.Tick}
}

// judge compares the history with what the store has, without storing anything, and
// the pages with the history.
func (g *gathering) judge(ctx context.Context, tx *store.Tx) error {
	behind := 0
	var cause string
	err := g.each(ctx, func(l *line, why error) (err error) {
		if why == nil && l.Kind == KindRecord {
			g.see(l.ID)
		}
		if g.end != (spot{}) {
			behind++
			return nil
		}
		if why == nil {
			var isNew bool
			if isNew, why, err = g.docs.Judge(ctx, tx, l.document()); err != nil {
				return err
			}
			if isNew {
				g.added[l.Kind]++
			}
		}
		switch {
		case fault.HasCode(why, CodeNewerDocument):
			return why
		case why == nil:
		case l != nil && l.costsTick():
			g.end, cause = g.at, why.Error()
		default:
			g.unparseable(g.at, why)
			g.passed[g.at] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	h := g.docs.judgedPast(g.project)
	if g.end != (spot{}) {
		g.notRecoverable(g.end, fmt.Sprintf("%s (tick %d), so that neither this line nor the %d behind it can be taken", cause, h.tick, behind))
	}
	return g.judgePages(ctx, h)
}

// see notes that an id was given, if it is a record's.
func (g *gathering) see(id string) {
	if number, ok := numberOf(id); ok && number <= maxLostIDs {
		g.highest = max(g.highest, number)
	}
}

// costsTick reports whether a line advances the clock.
func (l *line) costsTick() bool {
	var doc struct {
		Tick int64 `json:"tick"`
	}
	return l.Tick > 0 || l.Kind == KindRecord || json.Unmarshal(l.Doc, &doc) == nil && doc.Tick > 0
}

// judgePages lists the pages that cannot be read, and those of versions that the
// history does not have.
func (g *gathering) judgePages(ctx context.Context, h *past) error {
	for _, path := range slices.Sorted(slices.Values(g.folder.Paths)) {
		number, ok := numberOfPage(path)
		if !ok {
			continue
		}
		g.see(formatID(number))
		content, err := g.folder.Read(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var e *Entry
		if err == nil {
			e, _, err = parsePage(content)
		}
		switch {
		case err != nil:
			g.unparseable(spot{path: path}, err)
		case e.ID != formatID(number):
			g.unparseable(spot{path: path}, errors.New("its name is that of another record"))
		case e.Version > h.records[number].version:
			g.notRecoverable(spot{path: path}, fmt.Sprintf(
				"the page has version %d, the history only %d: its text is here to read, but its versions and ticks are lost", e.Version, h.records[number].version))
		}
	}
	return nil
}

// A reindex's transactions end after so much time, so that a live hook never waits
// on it; no more lines are held than reindexBatch.
const (
	reindexBatch = 200
	reindexTime  = 50 * time.Millisecond
)

// take stores the lines that were judged sound.
func (g *gathering) take(ctx context.Context) error {
	var batch []*line
	over := false
	err := g.each(ctx, func(l *line, why error) (err error) {
		if over = over || g.at == g.end; over || g.passed[g.at] {
			return nil
		}
		if why != nil {
			return fault.Newf(fault.Conflict, CodeConflict, "%s was changed while it was read", g.at.path).WithHint("reindex again")
		}
		if batch = append(batch, l); len(batch) == reindexBatch {
			err = g.flush(ctx, batch)
			batch = batch[:0]
		}
		return err
	})
	if err == nil {
		err = g.flush(ctx, batch)
	}
	if err != nil || g.highest == 0 {
		return err
	}
	return g.store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
		s, err := scopeOfDocument(ctx, tx, g.project)
		if err == nil {
			err = project.AdvanceClock(ctx, tx, s.p.Key, s.tick, g.highest)
		}
		return err
	})
}

// flush stores lines, in small transactions.
func (g *gathering) flush(ctx context.Context, lines []*line) error {
	for len(lines) > 0 {
		taken := 0
		err := g.store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error {
			for began := time.Now(); taken < len(lines) && time.Since(began) < reindexTime; taken++ {
				if err := g.docs.Apply(ctx, tx, lines[taken].document()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		lines = lines[taken:]
	}
	return ctx.Err()
}
