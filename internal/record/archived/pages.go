package archived

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/histories"
	"cairn/internal/store"
	"cairn/internal/store/follow"
)

const (
	selectOfStream = `SELECT p.id FROM projects p WHERE ifnull(p.records_stream, 'records/' || p.id) = ?
AND NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = p.id)`

	// The title of the oldest version that is not blanked, "" if that is not version 1.
	selectFirstTitle = `SELECT CASE WHEN c.doc ->> '$.version' = 1 THEN c.doc ->> '$.title' ELSE '' END` + record.OfRecord + `ORDER BY c.seq LIMIT 1`

	// The changes of the stream ?1 from the seq ?2 to ?3. Blanked changes are in no
	// index, so they are found by the ticks ?5 to ?6 of the project ?4.
	selectPlaces = `SELECT c.seq, 0, octet_length(c.doc) FROM changes c INDEXED BY changes_of_stream
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.doc IS NOT NULL AND c.seq BETWEEN ?2 AND ?3
UNION ALL
SELECT t.seq, t.tick, 0 FROM record_ticks t CROSS JOIN changes c ON c.seq = t.seq
WHERE t.project_key = ?4 AND t.tick BETWEEN ?5 AND ?6 AND c.doc IS NULL AND c.seq BETWEEN ?2 AND ?3
ORDER BY 1`

	selectLine = `SELECT k.text, c.id, o.text, ifnull(s.text, ''), ifnull(a.text, ''), c.at, ifnull(c.doc, ''), lower(hex(c.doc_hash))
FROM changes c JOIN symbols k ON k.id = c.kind JOIN symbols o ON o.id = c.op
LEFT JOIN symbols s ON s.id = c.session LEFT JOIN symbols a ON a.id = c.agent WHERE c.seq = ?`
)

// RenderedFiles contains the files for changes of one project, and the lines for the
// commit message.
type RenderedFiles struct {
	Files   []File   // each path once, its last state
	Ops     []string // a line for each operation, for the commit
	Refused []follow.Refusal

	// Anew means that texts were forgotten, which older files may contain under any name.
	// The caller must empty the folder records and fill it with RenderAll. Files is empty
	// then.
	Anew bool
}

// historyLine is a change in a file of history, in the form of an export. A change
// without a document keeps the document's hash and its tick.
type historyLine struct {
	histories.Exported
	DocSHA256 string `json:"doc_sha256,omitempty"` // hash of a forgotten document, in hex
	Tick      int64  `json:"tick,omitempty"`       // of a forgotten document
	SHA256    string `json:"sha256,omitempty"`     // hash of the line without this field, in hex
}

// Render renders changes of one project's records, oldest first and without a gap
// (records §3, archive). It returns the page of each record for its last version in
// changes, and the files of history after the last change. Equal changes give equal
// bytes, and after all changes, in any batches, the files are those of RenderAll. Changes
// of other streams are ignored.
//
// A change that cannot be read is refused and does not affect the others. When it can be
// read later, render it with all changes after it, or use RenderAll: alone it would
// replace newer files with older ones. A change without a document sets Anew.
func Render(ctx context.Context, tx *store.Tx, changes []store.Change) (RenderedFiles, error) {
	own := slices.DeleteFunc(slices.Clone(changes), func(c store.Change) bool { return !strings.HasPrefix(c.Stream, record.StreamPrefix) })
	if len(own) == 0 {
		return RenderedFiles{}, ctx.Err()
	}
	p, err := newPager(ctx, tx, own[0].Stream)
	if err != nil {
		return RenderedFiles{}, err
	}
	p.Until = own[len(own)-1].Seq
	for _, c := range own {
		if c.Stream != p.Stream {
			err = errors.New("it belongs to another project than the changes before it")
		} else {
			err = p.add(c)
		}
		if err != nil {
			p.Refused = append(p.Refused, follow.Refusal{Seq: c.Seq, Err: err})
		}
	}
	if p.events > 0 {
		p.Ops = append(p.Ops, fmt.Sprintf("records: %d events of sessions", p.events))
	}
	if p.Anew || p.Project.Key == 0 {
		return p.RenderedFiles, ctx.Err()
	}
	for _, v := range p.newest {
		if err := p.page(ctx, v, p.put); err != nil {
			return RenderedFiles{}, err
		}
	}
	return p.RenderedFiles, p.history(ctx, own[0].Seq)
}

// pager renders a project's records as files.
type pager struct {
	RenderedFiles
	*record.CallTx
	newest []record.Logged // newest version of each record, in the order of their first changes
	events int
	paths  map[string]string // paths of the records' pages, "" for records without a page
}

// newPager returns a pager for the project whose records are on a stream. If there is
// none, the project has no key.
func newPager(ctx context.Context, tx *store.Tx, stream string) (*pager, error) {
	var id string
	err := tx.Get(ctx, []any{&id}, selectOfStream, stream)
	if errors.Is(err, sql.ErrNoRows) {
		return &pager{CallTx: &record.CallTx{Stream: stream}}, nil
	}
	if err != nil {
		return nil, err
	}
	return pagerOf(ctx, tx, id)
}

func pagerOf(ctx context.Context, tx *store.Tx, id string) (*pager, error) {
	q, _, err := project.Find(ctx, tx, id)
	if err != nil {
		return nil, err
	}
	s, err := record.ScopeOf(ctx, tx, q)
	return &pager{CallTx: s, paths: map[string]string{}}, err
}

func (p *pager) put(f File) error {
	p.Files = append(p.Files, f)
	return nil
}

// add adds one change.
func (p *pager) add(c store.Change) error {
	if p.Project.Key == 0 {
		return fmt.Errorf("no project has the records of the stream %.100q", p.Stream)
	}
	if c.Doc == nil {
		p.Anew = true
		p.op("record: " + c.ID + " forgotten")
		return nil
	}
	if c.Kind == record.KindEvent {
		var e record.Event
		if err := json.Unmarshal(c.Doc, &e); err != nil {
			return record.BadDocument(err)
		}
		switch e.Type {
		case record.SessionSaved:
			p.op("session: " + c.ID + " saved")
		case record.SessionClosed:
			p.op("session: " + c.ID + " closed")
		default:
			p.events++
		}
		return nil
	}
	e, err := record.DecodeEntry(c.Doc)
	if err != nil {
		return err
	}
	what := strings.TrimPrefix(e.Event, "record_")
	if e.Event == record.StateTransition {
		what = string(e.FromState) + " -> " + string(e.State)
	}
	p.op("record: " + e.ID + " " + what + " | " + e.Title)
	v := record.Logged{Entry: e, Session: c.Session}
	if i := slices.IndexFunc(p.newest, func(old record.Logged) bool { return old.ID == e.ID }); i >= 0 {
		p.newest[i] = v
	} else {
		p.newest = append(p.newest, v)
	}
	return nil
}

func (p *pager) op(text string) { p.Ops = append(p.Ops, opLine(text)) }

// page renders a record's page.
func (p *pager) page(ctx context.Context, v record.Logged, put func(File) error) error {
	for _, id := range append([]string{v.ID, record.Deref(v.ParentID), v.ResolvedBy}, v.Related...) {
		if err := p.place(ctx, id); err != nil {
			return err
		}
	}
	text, err := pageOf(v.Entry, v.Session, func(id string) string { return p.paths[id] })
	if err != nil {
		return err
	}
	return put(File{p.paths[v.ID], text})
}

// place finds the path of a record's page.
func (p *pager) place(ctx context.Context, id string) error {
	number, ok := record.NumberOf(id)
	if _, known := p.paths[id]; known || !ok {
		return nil
	}
	var title string
	err := p.Tx.Get(ctx, []any{&title}, selectFirstTitle, p.Stream, id, int64(math.MaxInt64))
	if err == nil {
		p.paths[id] = pagePath(number, title)
	}
	if errors.Is(err, sql.ErrNoRows) {
		p.paths[id], err = "", nil
	}
	return err
}

// history puts the files with changes from a seq on.
func (p *pager) history(ctx context.Context, from int64) error {
	first, err := p.tickAt(ctx, from)
	if err != nil {
		return err
	}
	last, err := p.tickAt(ctx, p.Until)
	for n := first / ticksPerFolder; err == nil && n <= last/ticksPerFolder; n++ {
		err = p.folder(ctx, n, from, p.put)
	}
	return err
}

// tickAt returns the project's tick after a change.
func (p *pager) tickAt(ctx context.Context, seq int64) (int64, error) {
	low, high := int64(0), p.Tick // seqs grow with ticks
	for low < high {
		middle := (low + high + 1) / 2
		at, err := p.seqOrEnd(ctx, middle)
		if err != nil {
			return 0, err
		}
		if at <= seq {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low, nil
}

// seqOrEnd returns the seq of a tick's change. For tick 0 it is the lowest possible seq,
// for a future tick it is beyond the last.
func (p *pager) seqOrEnd(ctx context.Context, tick int64) (int64, error) {
	if tick > p.Tick {
		return math.MaxInt64, nil
	}
	return p.SeqOfTick(ctx, "", tick)
}

// place is the position of a change in the log.
type place struct{ seq, tick, size int64 }

// folder puts the files of the n-th folder that contain changes from a seq on.
func (p *pager) folder(ctx context.Context, n, from int64, put func(File) error) error {
	begin, err := p.seqOrEnd(ctx, n*ticksPerFolder)
	if err != nil {
		return err
	}
	end, err := p.seqOrEnd(ctx, (n+1)*ticksPerFolder)
	if err != nil {
		return err
	}
	var places []place
	err = p.Tx.Each(ctx, func(r *sql.Rows) error {
		var at place
		err := r.Scan(&at.seq, &at.tick, &at.size)
		places = append(places, at)
		return err
	}, selectPlaces, p.Stream, begin, min(end-1, p.Until), p.Project.Key, n*ticksPerFolder, (n+1)*ticksPerFolder-1)
	if err != nil {
		return err
	}
	for i, list := range inFiles(places) {
		if list[len(list)-1].seq < from {
			continue
		}
		text, err := p.lines(ctx, list)
		if err == nil {
			err = put(File{historyPath(n, int64(i)), text})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inFiles divides the changes of a folder into files.
func inFiles(places []place) (files [][]place) {
	begin, size := 0, int64(0)
	for i, at := range places {
		if i > begin && (i-begin == maxFileLines || size+at.size > maxFileBytes) {
			files = append(files, places[begin:i])
			begin, size = i, 0
		}
		size += at.size
	}
	if begin < len(places) {
		files = append(files, places[begin:])
	}
	return files
}

// lines returns changes as the lines of a file.
func (p *pager) lines(ctx context.Context, places []place) ([]byte, error) {
	var b bytes.Buffer
	for _, at := range places {
		l := historyLine{Tick: at.tick}
		var doc string
		var hash sql.NullString
		err := p.Tx.Get(ctx, []any{&l.Kind, &l.ID, &l.Op, &l.Session, &l.Agent, &l.At, &doc, &hash}, selectLine, at.seq)
		if err != nil {
			return nil, err
		}
		l.Project = p.Project.ID
		if json.Valid([]byte(doc)) {
			l.Doc = json.RawMessage(doc)
		} else {
			l.DocSHA256 = hash.String
		}
		text, err := l.text()
		if err != nil {
			return nil, err
		}
		b.Write(text)
	}
	return b.Bytes(), nil
}

// text returns a line as in its file.
func (l historyLine) text() (text []byte, err error) {
	if l.SHA256, err = l.sum(); err != nil {
		return nil, err
	}
	text, err = json.Marshal(l)
	return append(text, '\n'), err
}

// sum returns the hash of a line's content, independent of its spelling.
func (l historyLine) sum() (string, error) {
	l.SHA256 = ""
	text, err := json.Marshal(l)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// RenderAll calls put with every file of a project's present records in the archive, each
// path once. An unknown project has none.
func RenderAll(ctx context.Context, tx *store.Tx, projectID string, put func(File) error) error {
	p, err := pagerOf(ctx, tx, projectID)
	if err != nil || p.Project.Key == 0 {
		return err
	}
	last, err := p.LastNumber(ctx)
	if err != nil {
		return err
	}
	for number := int64(1); number <= last; number++ {
		v, err := p.CallTx.Newest(ctx, record.FormatID(number), p.Until)
		if err == nil && v.Entry != nil {
			err = p.page(ctx, v, put)
		}
		if err != nil {
			return err
		}
	}
	for n := int64(0); n <= p.Tick/ticksPerFolder; n++ {
		if err := p.folder(ctx, n, 0, put); err != nil {
			return err
		}
	}
	return ctx.Err()
}
