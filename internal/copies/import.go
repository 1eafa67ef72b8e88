package copies

import (
	"context"
	"errors"
	"io"
	"time"

	"cairn/internal/exchange"
	"cairn/internal/mail"
	"cairn/internal/memory"
	"cairn/internal/observation"
	"cairn/internal/observation/transfer"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/redact"
	"cairn/internal/regular"
	"cairn/internal/store"
)

// Imported is what became of an export that was imported.
type Imported struct {
	File     string                  `json:"file"`
	Projects []string                `json:"projects"` // that it holds
	New      int                     `json:"new"`      // projects that were not here
	Left     int                     `json:"aliases_left"`
	Rows     transfer.ImportedRows   `json:"observations"`
	Records  record.Counts           `json:"records"`
	Mail     mail.ImportedMail       `json:"mail"`
	Memories memory.ImportedMemories `json:"memories"`
	Lines    int                     `json:"lines"`
}

// An import's transactions end after so many lines or so much time, so that a
// live hook never waits on it.
const (
	maxImportLines = 500
	maxImportTime  = 50 * time.Millisecond
	maxImportBytes = 16 << 20 // of attachments that wait for their transaction
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

// Importer takes exports over into a store.
type Importer struct {
	Store    *store.Store
	Journal  *observation.Service
	Memories *memory.Service
	Filter   *redact.Filter // the present rules of redaction
	Archive  mail.Archive

	IncludePurged bool // store also what was purged
	Merge         bool // take records of another history over, beside those that are here

	Progress func(done, lines int) // if set, is told how many lines of how many are done
}

// Import takes an export over: projects, sessions, rows, records, mail, memories and
// what must not come back. Before anything is stored the whole file is read and judged, against
// the store too, so that a torn, altered or foreign one leaves no trace. Ids stay as
// they are where they are free. What is here already is left as it is, so that
// repeating it adds nothing, also after a kill. Records that both have changed are
// refused, or with Merge put behind those that are here.
//
// Errors: exchange.CodeDamaged (Invalid), exchange.CodeNewer (Unavailable),
// record.CodeOtherHistory and project.CodeOtherOrigin (Conflict), those of the file
// and of store.Write.
func (i Importer) Import(ctx context.Context, path string) (Imported, error) {
	r := importing{Importer: i, records: record.NewDocuments(i.Filter), report: Imported{File: path}}
	if i.Merge {
		r.records = record.NewMerging(i.Filter)
	}
	r.judged = mail.NewReferences(i.Store.Now())
	r.mail = mail.NewExportImporter(i.Filter, i.Archive, r.judged.Highest())
	r.memories = i.Memories.NewExportImporter()
	file, err := regular.Open(path)
	if err != nil {
		return r.report, err
	}
	defer file.Close()
	if err := i.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) error { return r.judge(ctx, tx, file) }); err != nil {
		return r.report, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return r.report, err
	}
	if r.rows, err = transfer.NewImporter(ctx, i.Journal, r.id, r.highest, i.IncludePurged); err != nil {
		return r.report, err
	}
	err = r.take(ctx, file)
	r.report.Rows, r.report.Records, r.report.Mail, r.report.Memories = r.rows.Counts(), r.records.Counts(), r.mail.Counts(), r.memories.Counts()
	return r.report, err
}

// importing is one export on its way into the store.
type importing struct {
	Importer
	id       string // the export's hash
	highest  transfer.HighestIDs
	rows     *transfer.Importer
	records  *record.Documents
	judged   *mail.References
	mail     *mail.ExportImporter
	memories *memory.ExportImporter
	queue    []any
	waiting  int // bytes of attachments in queue
	done     int
	lines    int // judged
	report   Imported
}

// eachLine reads an export and hands its lines on, decoded and sound by themselves.
func (r *importing) eachLine(ctx context.Context, file io.Reader, do func(l exchange.Line, v any) error) (*exchange.Reader, error) {
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

// decodeLine reads a line into the type of its kind.
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
		v = &record.Exported{}
	case transfer.KindForgotten:
		v = &transfer.ExportedForgotten{}
	case mail.KindProject, mail.KindAgent, mail.KindMessage, mail.KindDelivery, mail.KindContact, mail.KindReservation, mail.KindBlob:
		v = &mail.Exported{}
	case memory.LineVault, memory.LineMemory, memory.LineEntry, memory.LineContext, memory.LineTombstone:
		v = &memory.Line{}
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

// judge reads the whole file without storing anything: its frame, its lines, what
// they refer to, and whether its records go together with the store's.
func (r *importing) judge(ctx context.Context, tx *store.Tx, file io.Reader) error {
	refs := references{projects: map[string]bool{}, aliases: map[string]bool{}, sessions: map[string]bool{}, mail: r.judged}
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
		case *record.Exported:
			_, why, err := r.records.Judge(ctx, tx, record.Document{Exported: *v})
			if why != nil {
				err = l.Refuse(why)
			}
			return err
		case *mail.Exported:
			return r.mail.Fits(ctx, tx, v)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if why := r.judged.End(); why != "" {
		return exchange.Damaged(r.lines, why)
	}
	r.id, r.report.Projects = x.SHA256(), x.Header.Projects
	for _, n := range x.Header.Counts {
		r.report.Lines += n
	}
	return nil
}

// references knows what lines may refer to.
type references struct {
	stage    int
	projects map[string]bool // false for one that is merged into another
	aliases  map[string]bool
	sessions map[string]bool
	session  string // whose rows come
	prompts  map[int64]bool
	mail     *mail.References
	memories memory.References
}

// The order of the lines.
const (
	stageProjects = iota
	stageSessions
	stageRecords
	stageMail
	stageMemories
	stageForgotten
)

// check reports what is wrong with a line where it stands, "" if nothing.
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
			return "this session stands here for the second time"
		case !f.hasProject(v.Project):
			return noProjectLine
		}
		f.sessions[v.ID] = true
		f.session, f.prompts = v.ID, map[int64]bool{}
		return f.enter(stageSessions)
	case *transfer.Exported:
		return f.row(v)
	case *record.Exported:
		switch standing, known := f.projects[v.Project]; {
		case !known:
			return noProjectLine
		case !standing:
			return "its project is merged into another, which has its records"
		}
		return f.enter(stageRecords)
	case *mail.Exported:
		if why := f.mail.Check(v, func(id string) bool { return f.projects[id] }); why != "" {
			return why
		}
		return f.enter(stageMail)
	case *memory.Line:
		if why := f.memories.Check(v, func(id string) bool { return f.projects[id] }); why != "" {
			return why
		}
		return f.enter(stageMemories)
	default:
		return f.enter(stageForgotten)
	}
}

// project reports what is wrong with a project after those before it. No name may
// stand for two of them: what belongs to the one would go to the other.
func (f *references) project(e *project.Exported) string {
	_, twice := f.projects[e.ID]
	into, known := f.projects[e.MergedInto]
	switch {
	case twice:
		return "this project stands here for the second time"
	case e.MergedInto != "" && !(known && into):
		return "it is merged into a project that the file does not have before it"
	case f.aliases[e.ID]:
		return "its id is an alias of a project before it"
	}
	f.projects[e.ID] = e.MergedInto == ""
	for _, alias := range e.Aliases {
		if alias == e.ID {
			continue
		}
		if _, other := f.projects[alias]; other {
			return "one of its aliases is a project before it"
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
		return "it is a row of another session than the one before it"
	case !f.hasProject(e.Project):
		return noProjectLine
	case e.PromptID != 0 && !f.prompts[e.PromptID]:
		return "it refers to a prompt that its session does not have before it"
	case e.Prompt != nil && f.prompts[e.Prompt.ID]:
		return "another row has its prompt"
	}
	if e.Prompt != nil {
		f.prompts[e.Prompt.ID] = true
	}
	return ""
}

func (f *references) enter(stage int) string {
	if stage < f.stage {
		return "it does not stand where lines of its kind belong"
	}
	f.stage = stage
	return ""
}

// take stores the file's lines, a few hundred in each transaction.
func (r *importing) take(ctx context.Context, file io.Reader) error {
	x, err := r.eachLine(ctx, file, func(_ exchange.Line, v any) error {
		r.queue = append(r.queue, v)
		if m, ok := v.(*mail.Exported); ok {
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

func (r *importing) flush(ctx context.Context) error {
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

// durability is what the queued lines need; the last transaction makes all of them
// safe.
func (r *importing) durability() store.Sync {
	switch r.queue[0].(type) {
	case *record.Exported, *mail.Exported, *memory.Line:
		return store.Full
	}
	return store.Normal
}

// apply stores what one line says.
func (r *importing) apply(ctx context.Context, tx *store.Tx, v any) error {
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
	case *record.Exported:
		if err := r.rows.End(ctx, tx); err != nil { // its session, before records make it up
			return err
		}
		return r.records.Apply(ctx, tx, record.Document{Exported: *v})
	case *mail.Exported:
		if err := r.rows.End(ctx, tx); err != nil { // its session, before a reservation refers to it
			return err
		}
		return r.mail.Line(ctx, tx, v)
	case *memory.Line:
		return r.memories.Line(ctx, tx, v)
	case *transfer.ExportedForgotten:
		return r.rows.Forgotten(ctx, tx, *v)
	}
	return nil
}
