package copies

import (
	"context"
	"errors"
	"io"
	"time"

	"cairn/internal/exchange"
	"cairn/internal/mail"
	"cairn/internal/mail/documents"
	"cairn/internal/memory/items"
	"cairn/internal/memory/memories"
	"cairn/internal/observation"
	"cairn/internal/observation/transfer"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/redact"
	"cairn/internal/regular"
	"cairn/internal/store"
)

// Imported is the result of importRun an export.
type Imported struct {
	File     string                 `json:"file"`
	Projects []string               `json:"projects"` // in the export
	New      int                    `json:"new"`      // projects that were new here
	Left     int                    `json:"aliases_left"`
	Rows     transfer.ImportedRows  `json:"observations"`
	Records  histories.Counts       `json:"records"`
	Mail     documents.ImportedMail `json:"mail"`
	Memories items.ImportedMemories `json:"memories"`
	Lines    int                    `json:"lines"`
}

// A transaction of an import ends after this many lines or this much time, so that a live
// hook never waits for it.
const (
	maxImportLines = 500
	maxImportTime  = 50 * time.Millisecond
	maxImportBytes = 16 << 20 // of queued attachments
)

// IsExport reports whether a file is an export of cairn.
func IsExport(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return exchange.IsExport(f)
}

// Importer imports exports into a store.
type Importer struct {
	Store        *store.Store
	Observations *observation.Service
	Memories     *memories.Service
	Filter       *redact.Filter // the current redaction rules
	Archive      mail.Archive

	IncludePurged bool // also import what was purged here
	Merge         bool // add records of another history after the existing ones

	Progress func(done, lines int) // if set, is called with the number of processed lines and of all lines
}

// Import imports an export: projects, sessions, rows, records, mail, memories and hashes
// of forgotten data. It reads and checks the whole file, also against the store, before
// it stores anything. So a truncated, altered or incompatible file changes nothing. Ids
// stay where they are free. Existing data stays unchanged, so Import is idempotent and
// safe to retry after a kill. If both stores have changed the records, it fails, or with
// Merge it adds the file's records after the existing ones.
//
// Errors: exchange.CodeDamaged (Invalid), exchange.CodeNewer (Unavailable),
// record.CodeOtherHistory and project.CodeOtherOrigin (Conflict), those of the file
// and of store.Write.
func (i Importer) Import(ctx context.Context, path string) (Imported, error) {
	r := importRun{Importer: i, records: histories.NewDocuments(i.Filter), report: Imported{File: path}}
	if i.Merge {
		r.records = histories.NewMerging(i.Filter)
	}
	r.mailRefs = documents.NewReferences(i.Store.Now())
	r.mail = documents.NewExportImporter(i.Filter, i.Archive, r.mailRefs.Highest())
	r.memories = i.Memories.NewDocuments()
	file, err := regular.Open(path)
	if err != nil {
		return r.report, err
	}
	defer file.Close()
	if err := i.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return r.check(ctx, tx, file) }); err != nil {
		return r.report, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return r.report, err
	}
	if r.rows, err = transfer.NewImporter(ctx, i.Observations, r.id, r.highest, i.IncludePurged); err != nil {
		return r.report, err
	}
	err = r.take(ctx, file)
	r.report.Rows, r.report.Records, r.report.Mail, r.report.Memories = r.rows.Counts(), r.records.Counts(), r.mail.Counts(), r.memories.Counts()
	return r.report, err
}

// importRun is one running import.
type importRun struct {
	Importer
	id       string // hash of the export
	highest  transfer.HighestIDs
	rows     *transfer.Importer
	records  *histories.Documents
	mailRefs *documents.References
	mail     *documents.ExportImporter
	memories *items.Documents
	queue    []any
	waiting  int // bytes of queued attachments
	done     int
	lines    int // checked lines
	report   Imported
}

// eachLine reads an export and calls do with each line, decoded and validated.
func (r *importRun) eachLine(ctx context.Context, file io.Reader, do func(l exchange.Line, v any) error) (*exchange.Reader, error) {
	x, err := exchange.NewReader(file)
	if err != nil {
		return nil, err
	}
	for {
		l, err := x.Next()
		if err == io.EOF {
			return x, nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		v, err := decodeLine(l)
		if err != nil {
			return nil, err
		}
		if err := do(l, v); err != nil {
			return nil, err
		}
	}
}

// decodeLine decodes a line into the type of its kind.
func decodeLine(l exchange.Line) (any, error) {
	var v interface{ Check() error }
	switch l.Kind {
	case kindProject:
		v = &project.Exported{}
	case transfer.KindSession:
		v = &project.ExportedSession{}
	case transfer.KindObservation:
		v = &transfer.Exported{}
	case record.KindRecord, record.KindEvent:
		v = &histories.Exported{}
	case transfer.KindForgotten:
		v = &transfer.ExportedForgotten{}
	case mail.KindProject, mail.KindAgent, mail.KindMessage, mail.KindDelivery, mail.KindContact, mail.KindReservation, mail.KindBlob:
		v = &documents.Exported{}
	case items.LineVault, items.LineMemory, items.LineEntry, items.LineContext, items.LineTombstone:
		v = &items.Item{}
	default:
		return nil, l.Unknown()
	}
	if err := l.Decode(v); err != nil {
		return nil, err
	}
	if err := v.Check(); err != nil {
		return nil, l.Refuse(err)
	}
	return v, nil
}

// check reads the whole file without storing anything. It checks the frame, the lines,
// their references, and whether the records fit those of the store.
func (r *importRun) check(ctx context.Context, tx *store.Tx, file io.Reader) error {
	refs := references{projects: map[string]bool{}, aliases: map[string]bool{}, sessions: map[string]bool{}, mail: r.mailRefs}
	x, err := r.eachLine(ctx, file, func(l exchange.Line, v any) error {
		r.lines = l.Number
		if why := refs.check(v); why != "" {
			return exchange.Damaged(l.Number, why)
		}
		switch v := v.(type) {
		case *project.Exported:
			return project.Fits(ctx, tx, *v)
		case *transfer.Exported:
			r.highest.See(v)
		case *histories.Exported:
			_, why, err := r.records.Check(ctx, tx, histories.Document{Exported: *v})
			if why != nil {
				err = l.Refuse(why)
			}
			return err
		case *documents.Exported:
			return r.mail.Fits(ctx, tx, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if why := r.mailRefs.End(); why != "" {
		return exchange.Damaged(r.lines, why)
	}
	r.id, r.report.Projects = x.SHA256(), x.Header.Projects
	for _, n := range x.Header.Counts {
		r.report.Lines += n
	}
	return nil
}

// references tracks which objects a line may refer to.
type references struct {
	stage    int
	projects map[string]bool // false for a project that is merged into another
	aliases  map[string]bool
	sessions map[string]bool
	session  string // whose rows follow
	prompts  map[int64]bool
	mail     *documents.References
	memories items.References
}

// Positions in the order of the lines.
const (
	stageProjects = iota
	stageSessions
	stageRecords
	stageMail
	stageMemories
	stageForgotten
)

// check returns what is wrong with a line at its position, or "".
func (f *references) check(v any) string {
	switch v := v.(type) {
	case *project.Exported:
		if why := f.project(v); why != "" {
			return why
		}
		return f.enter(stageProjects)
	case *project.ExportedSession:
		switch {
		case f.sessions[v.ID]:
			return "this session occurs twice"
		case !f.hasProject(v.Project):
			return noProjectLine
		}
		f.sessions[v.ID] = true
		f.session, f.prompts = v.ID, map[int64]bool{}
		return f.enter(stageSessions)
	case *transfer.Exported:
		return f.row(v)
	case *histories.Exported:
		switch standing, known := f.projects[v.Project]; {
		case !known:
			return noProjectLine
		case !standing:
			return "its project is merged into another project, which has its records"
		}
		return f.enter(stageRecords)
	case *documents.Exported:
		if why := f.mail.Check(v, func(id string) bool { return f.projects[id] }); why != "" {
			return why
		}
		return f.enter(stageMail)
	case *items.Item:
		if why := f.memories.Check(v, func(id string) bool { return f.projects[id] }); why != "" {
			return why
		}
		return f.enter(stageMemories)
	default:
		return f.enter(stageForgotten)
	}
}

// project returns what is wrong with a project, given the projects before it, or "". A
// name must not mean two projects: data of one would go to the other.
func (f *references) project(e *project.Exported) string {
	_, twice := f.projects[e.ID]
	into, known := f.projects[e.MergedInto]
	switch {
	case twice:
		return "this project occurs twice"
	case e.MergedInto != "" && !(known && into):
		return "it is merged into a project that is not before it in the file"
	case f.aliases[e.ID]:
		return "its id is an alias of an earlier project"
	}
	f.projects[e.ID] = e.MergedInto == ""
	for _, alias := range e.Aliases {
		if alias == e.ID {
			continue
		}
		if _, other := f.projects[alias]; other {
			return "one of its aliases is the id of an earlier project"
		}
		f.aliases[alias] = true
	}
	return ""
}

const noProjectLine = "it refers to a project that the file does not have"

func (f *references) hasProject(id string) bool {
	_, ok := f.projects[id]
	return ok
}

func (f *references) row(e *transfer.Exported) string {
	switch {
	case f.stage != stageSessions || e.Session != f.session:
		return "its session is not the session before it"
	case !f.hasProject(e.Project):
		return noProjectLine
	case e.PromptID != 0 && !f.prompts[e.PromptID]:
		return "it refers to a prompt that is not before it in its session"
	case e.Prompt != nil && f.prompts[e.Prompt.ID]:
		return "another row has the same prompt"
	}
	if e.Prompt != nil {
		f.prompts[e.Prompt.ID] = true
	}
	return ""
}

func (f *references) enter(stage int) string {
	if stage < f.stage {
		return "lines of its kind must not be at this position"
	}
	f.stage = stage
	return ""
}

// take stores the file's lines, a few hundred in each transaction.
func (r *importRun) take(ctx context.Context, file io.Reader) error {
	x, err := r.eachLine(ctx, file, func(_ exchange.Line, v any) error {
		r.queue = append(r.queue, v)
		if m, ok := v.(*documents.Exported); ok {
			r.waiting += len(m.Data)
		}
		if len(r.queue) < maxImportLines && r.waiting < maxImportBytes {
			return nil
		}
		r.waiting = 0
		return r.flush(ctx)
	})
	if err != nil {
		return err
	}
	if x.SHA256() != r.id {
		return exchange.Damaged(1, "the file was changed while it was read")
	}
	if err := r.flush(ctx); err != nil {
		return err
	}
	return r.Store.Write(ctx, store.Full, r.rows.Done)
}

func (r *importRun) flush(ctx context.Context) error {
	for len(r.queue) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		taken := 0
		err := r.Store.Write(ctx, r.durability(), func(ctx context.Context, tx *store.Tx) error {
			began := time.Now()
			for taken < len(r.queue) && time.Since(began) < maxImportTime {
				if err := r.apply(ctx, tx, r.queue[taken]); err != nil {
					return err
				}
				taken++
			}
			return nil
		})
		if err != nil {
			return err
		}
		r.queue = r.queue[taken:]
		if r.done += taken; r.Progress != nil {
			r.Progress(r.done, r.report.Lines)
		}
	}
	return nil
}

// durability returns the durability that the queued lines need. The last transaction
// makes all of them durable.
func (r *importRun) durability() store.Sync {
	switch r.queue[0].(type) {
	case *histories.Exported, *documents.Exported, *items.Item:
		return store.Full
	}
	return store.Normal
}

// apply stores the content of one line.
func (r *importRun) apply(ctx context.Context, tx *store.Tx, v any) error {
	switch v := v.(type) {
	case *project.Exported:
		p, err := project.Import(ctx, tx, *v)
		if p.New {
			r.report.New++
		}
		r.report.Left += p.Left
		return err
	case *project.ExportedSession:
		return r.rows.Session(ctx, tx, *v)
	case *transfer.Exported:
		return r.rows.Row(ctx, tx, *v)
	case *histories.Exported:
		if err := r.rows.End(ctx, tx); err != nil { // its session, before records create a substitute
			return err
		}
		return r.records.Apply(ctx, tx, histories.Document{Exported: *v})
	case *documents.Exported:
		if err := r.rows.End(ctx, tx); err != nil { // the session that a reservation refers to
			return err
		}
		return r.mail.Line(ctx, tx, v)
	case *items.Item:
		return r.memories.Apply(ctx, tx, v)
	case *transfer.ExportedForgotten:
		return r.rows.Forgotten(ctx, tx, *v)
	}
	return nil
}
