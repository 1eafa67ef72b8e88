package archived

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
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/redact"
	"cairn/internal/store"
)

// Folder is a project's folder of the archive to be read.
type Folder struct {
	Name  string   // name of the folder, for messages
	Paths []string // paths of all files below it, with slashes, in any order
	Read  func(ctx context.Context, path string) ([]byte, error)
}

// Reindexed is the result of a Reindexer (mail §10.6).
type Reindexed struct {
	Inserted       map[string]int `json:"inserted"`        // number of changes by kind
	Conflicts      []Unusable     `json:"conflicts"`       // conflicts with stored records
	Unparseable    []Unusable     `json:"unparseable"`     // files and lines that cannot be parsed
	NotRecoverable []Unusable     `json:"not_recoverable"` // parsed changes that cannot be applied
}

// Unusable is a file, or a line of a file, that was skipped.
type Unusable struct {
	Project string `json:"project"` // the folder's name
	Path    string `json:"path"`    // with a colon and the line number, from 1, for a line
	Reason  string `json:"reason"`
}

// Reindexer restores the records of a store from its archive: versions, ticks, sessions
// and activity in the files of history. The store takes precedence: if a project has
// records of another history, none are taken from the archive.
//
// An unusable line is listed and skipped as long as no tick is missing; changes without a
// tick may be missing. After a missing tick nothing is taken, because ids, versions and
// ticks of records must not be used twice. Records whose pages have newer versions than
// could be applied are listed. Ids in skipped pages and lines are never used again.
type Reindexer struct {
	store  *store.Store
	docs   *histories.Documents
	dryRun bool
	out    Reindexed
}

// NewReindexer returns a Reindexer. With dryRun it writes nothing, and Inserted counts
// the changes that would be written. The filter redacts stored texts.
func NewReindexer(s *store.Store, filter *redact.Filter, dryRun bool) *Reindexer {
	return &Reindexer{store: s, docs: histories.NewDocuments(filter), dryRun: dryRun, out: Reindexed{
		Inserted: map[string]int{}, Conflicts: []Unusable{}, Unparseable: []Unusable{}, NotRecoverable: []Unusable{},
	}}
}

// Result returns the result for the folders so far.
func (r *Reindexer) Result() Reindexed { return r.out }

// Add stores the records of one project from its folder. It creates a missing project;
// import the project first to keep its data. It is idempotent and safe to retry after a
// kill: another Reindexer finds stored changes known.
//
// Errors: CodeNewerDocument (Unavailable) for changes of a newer cairn; CodeConflict if
// others change the project's records meanwhile; those of the store and of ctx. Results
// so far stay.
func (r *Reindexer) Add(ctx context.Context, projectID string, f Folder) error {
	g := &folderReader{Reindexer: r, folder: f, project: projectID, passed: map[spot]bool{}, added: map[string]int{}}
	g.order()
	err := r.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return g.check(ctx, tx) })
	if fault.HasCode(err, histories.CodeOtherHistory) || fault.HasCode(err, histories.CodeBothHaveRecords) {
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

// folderReader reads one folder into the store.
type folderReader struct {
	*Reindexer
	folder  Folder
	project string
	files   []string // files of history, in order
	at      spot     // position of the current line
	passed  map[spot]bool
	end     spot // the first line that is not taken, nor any after it; zero for none
	added   map[string]int
	highest int64 // highest record number in the folder
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

func (g *folderReader) unparseable(at spot, why error) {
	g.out.Unparseable = append(g.out.Unparseable, Unusable{g.folder.Name, at.String(), why.Error()})
}

func (g *folderReader) notRecoverable(at spot, why string) {
	g.out.NotRecoverable = append(g.out.NotRecoverable, Unusable{g.folder.Name, at.String(), why})
}

// order finds the files of history and the gaps between them.
func (g *folderReader) order() {
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

// each calls fn with the lines of the history. why is the reason if a line is invalid or
// a file cannot be read.
func (g *folderReader) each(ctx context.Context, fn func(l *historyLine, why error) error) error {
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
				l.Project = g.project // the project may have had another name when the line was written
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
func readLine(text []byte) (*historyLine, error) {
	l := &historyLine{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, errors.New("it is not a complete line of JSON")
	}
	if sum, err := l.sum(); err != nil || sum != l.SHA256 {
		return nil, errors.New("it does not match its sha256")
	}
	if l.Kind != record.KindRecord && l.Kind != record.KindEvent {
		return nil, fmt.Errorf("its kind %.40q is not a kind of records", l.Kind)
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

func (l *historyLine) document() histories.Document {
	return histories.Document{Exported: l.Exported, DocSHA256: l.DocSHA256, Tick: l.Tick}
}

// check compares the history with the store and the pages with the history, without
// storing anything.
func (g *folderReader) check(ctx context.Context, tx *store.Tx) error {
	behind := 0
	var cause string
	err := g.each(ctx, func(l *historyLine, why error) (err error) {
		if why == nil && l.Kind == record.KindRecord {
			g.see(l.ID)
		}
		if g.end != (spot{}) {
			behind++
			return nil
		}
		if why == nil {
			var isNew bool
			if isNew, why, err = g.docs.Check(ctx, tx, l.document()); err != nil {
				return err
			}
			if isNew {
				g.added[l.Kind]++
			}
		}
		switch {
		case fault.HasCode(why, histories.CodeNewerDocument):
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
	if g.end != (spot{}) {
		g.notRecoverable(g.end, fmt.Sprintf("%s (tick %d), so neither this line nor the %d lines after it can be used", cause, g.docs.CheckedTick(g.project), behind))
	}
	return g.checkPages(ctx)
}

// see marks an id as used if it is a record's.
func (g *folderReader) see(id string) {
	if number, ok := record.NumberOf(id); ok && number <= histories.MaxLostIDs {
		g.highest = max(g.highest, number)
	}
}

// costsTick reports whether a line advances the clock.
func (l *historyLine) costsTick() bool {
	var doc struct {
		Tick int64 `json:"tick"`
	}
	return l.Tick > 0 || l.Kind == record.KindRecord || json.Unmarshal(l.Doc, &doc) == nil && doc.Tick > 0
}

// checkPages lists the pages that cannot be read, and those with versions that the
// history lacks.
func (g *folderReader) checkPages(ctx context.Context) error {
	for _, path := range slices.Sorted(slices.Values(g.folder.Paths)) {
		number, ok := numberOfPage(path)
		if !ok {
			continue
		}
		g.see(record.FormatID(number))
		content, err := g.folder.Read(ctx, path)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var e *record.Entry
		if err == nil {
			e, _, err = parsePage(content)
		}
		switch {
		case err != nil:
			g.unparseable(spot{path: path}, err)
		case e.ID != record.FormatID(number):
			g.unparseable(spot{path: path}, errors.New("its name is that of another record"))
		case e.Version > g.docs.CheckedVersion(g.project, number):
			g.notRecoverable(spot{path: path}, fmt.Sprintf("the page has version %d, the history only %d: its text can be read here, but its versions and ticks are lost",
				e.Version, g.docs.CheckedVersion(g.project, number)))
		}
	}
	return nil
}

// A transaction of a reindex ends after this time, so that a live hook never waits for
// it. At most reindexBatch lines are in memory.
const (
	reindexBatch = 200
	reindexTime  = 50 * time.Millisecond
)

// take stores the lines that were found valid.
func (g *folderReader) take(ctx context.Context) error {
	var batch []*historyLine
	over := false
	err := g.each(ctx, func(l *historyLine, why error) (err error) {
		if over = over || g.at == g.end; over || g.passed[g.at] {
			return nil
		}
		if why != nil {
			return fault.Newf(fault.Conflict, record.CodeConflict, "%s was changed while it was read", g.at.path).WithHint("reindex again")
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
		s, err := record.ScopeOfDocument(ctx, tx, g.project)
		if err == nil {
			err = project.AdvanceClock(ctx, tx, s.Project.Key, s.Tick, g.highest)
		}
		return err
	})
}

// flush stores lines, in small transactions.
func (g *folderReader) flush(ctx context.Context, lines []*historyLine) error {
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
