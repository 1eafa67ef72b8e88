package documents

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/pathpattern"
	"cairn/internal/store"
)

// Folder is a project's folder in the archive, as input of a Reindexer.
type Folder struct {
	Name  string   // the folder's name, for errors
	Paths []string // all files below it, with slashes
	Read  func(ctx context.Context, path string) ([]byte, error)
}

// Reindexed is the result of a reindex (mail §10.6).
type Reindexed struct {
	Inserted    map[string]int `json:"inserted"`    // number of documents by kind
	Conflicts   []Unusable     `json:"conflicts"`   // files that conflict with existing entities or other files
	Unparseable []Unusable     `json:"unparseable"` // files that cannot be parsed
}

// Unusable is a file that was skipped.
type Unusable struct {
	Project string `json:"project"`
	Path    string `json:"path"`
	Reason  string `json:"reason"`
}

// Reindexer restores the mail of a store from its archive, with the numbers, uids, times and
// states in the files. Existing rows win. Add all folders before Finish, which applies references
// between projects (contacts).
type Reindexer struct {
	store   *store.Store
	dryRun  bool
	archive mail.Archive
	out     Reindexed
	pending []pendingContact
	uids    map[string]string // project_uid of a folder → project_uid of this store, if different
	ids     map[string]string // folder name → shared id of its project
}

type pendingContact struct {
	folder string
	doc    *mail.Contact
}

// NewReindexer returns a Reindexer. With dryRun it writes nothing, and Inserted is an estimate
// that checks each file on its own.
func NewReindexer(s *store.Store, archive mail.Archive, dryRun bool) *Reindexer {
	return &Reindexer{store: s, dryRun: dryRun, archive: archive, uids: map[string]string{}, ids: map[string]string{}, out: Reindexed{Inserted: map[string]int{}, Conflicts: []Unusable{}, Unparseable: []Unusable{}}}
}

// Add restores one project's folder. It skips and lists files that it cannot use. It is safe to
// retry.
//
// Errors: CodeFormat for an archive of a newer format; Invalid if its project.json cannot be read;
// those of the store.
func (r *Reindexer) Add(ctx context.Context, f Folder) error {
	content, err := f.Read(ctx, "project.json")
	if err != nil {
		return err
	}
	d, err := parse("project.json", content, "")
	if err != nil {
		return fault.Newf(fault.Invalid, mail.CodeInvalid, "project.json of the archive %s cannot be used: %v", f.Name, err)
	}
	p := d.(*mail.Project)
	if p.Format > mail.ArchiveFormat {
		return fault.Newf(fault.Unavailable, mail.CodeFormat, "the archive %s has format %d; this cairn knows %d", f.Name, p.Format, mail.ArchiveFormat).
			WithHint("update cairn")
	}
	if len(p.UID) != 20 || p.Slug == "" || p.ProductID == "" {
		return fault.Newf(fault.Invalid, mail.CodeInvalid, "project.json of the archive %s lacks a uid, a slug or a project id", f.Name)
	}
	read := r.parseAll(ctx, f, p.UID)
	docs := append([]mail.Document{p}, read.inOrder()...)
	here, err := r.home(ctx, p)
	if err != nil {
		return err
	}
	if here != nil && here.UID != p.UID {
		r.uids[p.UID] = here.UID
		docs = docs[1:]
	}
	for _, d := range docs {
		rehome(r.uids, d)
	}
	if err := r.apply(ctx, f.Name, docs); err != nil {
		return err
	}
	if here, err = r.home(ctx, p); err != nil {
		return err
	}
	if here != nil {
		r.ids[f.Name] = here.ProductID
	}
	for _, c := range read.contacts {
		r.pending = append(r.pending, pendingContact{f.Name, c})
	}
	return ctx.Err()
}

// home returns this store's mail project for a folder's project, or nil.
func (r *Reindexer) home(ctx context.Context, p *mail.Project) (here *mail.Project, err error) {
	err = r.store.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		here, err = homeOf(ctx, tx, p)
		return err
	})
	return here, err
}

// ProjectID returns the shared id of the project of a folder that was added, or "" for another
// folder.
func (r *Reindexer) ProjectID(folder string) string { return r.ids[folder] }

// Finish restores contacts and raises the next numbers above those in the archive's ids.json. ids
// may be nil.
func (r *Reindexer) Finish(ctx context.Context, ids map[string]int64) (Reindexed, error) {
	for _, c := range r.pending {
		rehome(r.uids, c.doc)
		if err := r.apply(ctx, c.folder, []mail.Document{c.doc}); err != nil {
			return r.out, err
		}
	}
	r.pending = nil
	if r.dryRun || len(ids) == 0 {
		return r.out, nil
	}
	return r.out, r.store.Write(ctx, store.Full, func(ctx context.Context, tx *store.Tx) error { return RaiseNumbers(ctx, tx, ids) })
}

// archived contains the entities read from the files of a folder.
type archived struct {
	agents       []*mail.Agent
	blobs        []*mail.Blob
	messages     []*mail.Message
	deliveries   []*mail.Delivery
	contacts     []*mail.Contact
	reservations []*mail.Reservation
}

// parseAll reads every file of a folder.
func (r *Reindexer) parseAll(ctx context.Context, f Folder, uid string) *archived {
	a := &archived{}
	for _, name := range f.Paths {
		if kind, _, _ := SourceOf(name); kind == "" || kind == mail.KindProject {
			continue
		}
		if err := a.read(ctx, f, name, uid); err != nil {
			r.out.Unparseable = append(r.out.Unparseable, Unusable{f.Name, name, err.Error()})
		}
	}
	for _, m := range a.dropDoubles() {
		r.out.Conflicts = append(r.out.Conflicts, Unusable{f.Name, m.ArchivePath, fmt.Sprintf("another file is the message %d", m.ID)})
	}
	a.complete()
	return a
}

// dropDoubles removes and returns duplicates: files of a message that another file also contains.
// It keeps tombstones first, then the file with the message's expected name.
func (a *archived) dropDoubles() (doubles []*mail.Message) {
	slices.SortStableFunc(a.messages, func(x, y *mail.Message) int { return cmp.Compare(misnamed(x), misnamed(y)) })
	ids, uids := map[int64]bool{}, map[string]bool{}
	a.messages = slices.DeleteFunc(a.messages, func(m *mail.Message) bool {
		if ids[m.ID] || uids[m.UID] {
			doubles = append(doubles, m)
			return true
		}
		ids[m.ID], uids[m.UID] = true, true
		return false
	})
	return doubles
}

// misnamed is the sort key for duplicates: -1 for a tombstone, 0 for a file with the message's
// expected name, 1 for any other file.
func misnamed(m *mail.Message) int {
	if m.Purged != 0 {
		return -1
	}
	if path.Base(m.ArchivePath) == mail.MessageFile(m.Created, m.Subject, m.ID) {
		return 0
	}
	return 1
}

func (a *archived) read(ctx context.Context, f Folder, name, uid string) error {
	content, err := f.Read(ctx, name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(name, "attachments/") {
		return a.readBlob(ctx, f, content, uid)
	}
	d, err := parse(name, content, uid)
	if err != nil {
		return err
	}
	switch d := d.(type) {
	case *mail.Agent:
		a.agents = append(a.agents, d)
	case *mail.Message:
		a.messages = append(a.messages, d)
	case *mail.Delivery:
		a.deliveries = append(a.deliveries, d)
	case *mail.Contact:
		a.contacts = append(a.contacts, d)
	case *mail.Reservation:
		pattern, err := pathpattern.Parse(d.PathPattern, pathpattern.Options{})
		if err != nil {
			return err
		}
		d.LitPrefix = pattern.LiteralPrefix()
		a.reservations = append(a.reservations, d)
	}
	return nil
}

func (a *archived) readBlob(ctx context.Context, f Folder, about []byte, uid string) error {
	var m manifest
	if err := strictly(about, &m); err != nil {
		return err
	}
	b := &mail.Blob{SHA1: m.SHA1, ProjectUID: uid, MediaType: m.MediaType, Bytes: m.Bytes}
	if len(m.SHA1) != 40 {
		return fmt.Errorf("its sha1 is invalid")
	}
	data, err := f.Read(ctx, b.Path(m.MediaType))
	if err != nil {
		return err
	}
	if mail.SHA1(data) != m.SHA1 {
		return fmt.Errorf("the bytes of attachment %s are not those that its name says", m.SHA1)
	}
	b.Data = data
	a.blobs = append(a.blobs, b)
	return nil
}

// complete sets the fields of each entity that are derived from other files.
func (a *archived) complete() {
	slices.SortFunc(a.agents, func(x, y *mail.Agent) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.messages, func(x, y *mail.Message) int {
		return cmp.Or(cmp.Compare(x.Created, y.Created), cmp.Compare(x.ID, y.ID))
	})
	slices.SortFunc(a.reservations, func(x, y *mail.Reservation) int { return cmp.Compare(x.ID, y.ID) })
	slices.SortFunc(a.deliveries, func(x, y *mail.Delivery) int {
		return cmp.Or(cmp.Compare(x.MessageID, y.MessageID), cmp.Compare(x.Agent, y.Agent))
	})
	byID := map[int64]*mail.Message{}
	ordinals := map[string]int64{}
	for _, m := range a.messages {
		byID[m.ID] = m
		m.Ordinal = max(ordinals[mail.Month(m.Created)]+1, shelfBegin(m.ArchivePath), m.Ordinal)
		ordinals[mail.Month(m.Created)] = m.Ordinal
	}
	for _, m := range a.messages {
		if m.ReplyTo != nil && byID[*m.ReplyTo] != nil {
			m.ReplyToUID = &byID[*m.ReplyTo].UID
		}
	}
	for _, d := range a.deliveries {
		if m := byID[d.MessageID]; m != nil && d.Recipient == "bcc" {
			m.BCC = append(m.BCC, d.Agent)
		}
	}
	var last int64
	for _, r := range a.reservations {
		r.Ordinal = max(last+1, shelfBegin(r.ArchivePath))
		last = r.Ordinal
	}
}

// shelfBegin returns the first ordinal of the numbered folder that contains a file, or 0 for other
// folders.
func shelfBegin(name string) int64 {
	n, err := strconv.ParseInt(path.Base(path.Dir(name)), 10, 32)
	if folder := path.Base(path.Dir(name)); err != nil || len(folder) < 3 {
		return 0
	}
	return n * mail.PerFolder
}

// inOrder returns the documents without contacts. Each comes after those that it refers to.
func (a *archived) inOrder() []mail.Document {
	var out []mail.Document
	for _, d := range a.agents {
		out = append(out, d)
	}
	for _, d := range a.blobs {
		out = append(out, d)
	}
	for _, d := range a.messages {
		out = append(out, d)
	}
	for _, d := range a.deliveries {
		out = append(out, d)
	}
	for _, d := range a.reservations {
		out = append(out, d)
	}
	return out
}

const applyBatch = 200

// apply applies documents in small transactions, so that other writers do not wait long. A
// document with a missing reference may be half applied when that is found. So its transaction is
// rolled back, and the documents of the batch are applied one by one.
func (r *Reindexer) apply(ctx context.Context, folder string, docs []mail.Document) error {
	for batch := range slices.Chunk(docs, applyBatch) {
		err := r.together(ctx, folder, batch)
		if !fault.HasCode(err, mail.CodeIncomplete) {
			if err != nil {
				return err
			}
			continue
		}
		for _, d := range batch {
			switch err := r.together(ctx, folder, []mail.Document{d}); {
			case fault.HasCode(err, mail.CodeIncomplete):
				r.out.Conflicts = append(r.out.Conflicts, Unusable{folder, placeOf(d), err.Error()})
			case err != nil:
				return err
			}
		}
	}
	return nil
}

// together applies documents in one transaction. CodeIncomplete rolls it back.
func (r *Reindexer) together(ctx context.Context, folder string, batch []mail.Document) (err error) {
	var inserted map[string]int
	var conflicts []Unusable
	each := func(ctx context.Context, tx *store.Tx) error {
		inserted, conflicts = map[string]int{}, nil
		for _, d := range batch {
			added, err := r.one(ctx, tx, d)
			switch {
			case fault.HasCode(err, CodeTaken):
				conflicts = append(conflicts, Unusable{folder, placeOf(d), err.Error()})
			case err != nil:
				return err
			case added:
				inserted[d.Kind()]++
			}
		}
		return nil
	}
	if r.dryRun {
		err = r.store.Read(ctx, each)
	} else {
		err = r.store.Write(ctx, store.Full, each)
	}
	if err != nil {
		return err
	}
	for kind, n := range inserted {
		r.out.Inserted[kind] += n
	}
	r.out.Conflicts = append(r.out.Conflicts, conflicts...)
	return nil
}

func (r *Reindexer) one(ctx context.Context, tx *store.Tx, d mail.Document) (added bool, err error) {
	if r.dryRun {
		there, err := known(ctx, tx, d)
		return !there, err
	}
	return Apply(ctx, tx, mail.Actor{}, r.archive, d, true)
}

// placeOf returns the path of the file that a document was read from.
func placeOf(d mail.Document) string {
	switch d := d.(type) {
	case *mail.Agent:
		return "agents/" + d.Name + "/profile.json"
	case *mail.Message:
		return d.ArchivePath
	case *mail.Delivery:
		return d.ArchivePath
	case *mail.Contact:
		return d.ArchivePath
	case *mail.Reservation:
		return d.ArchivePath
	case *mail.Blob:
		return "attachments/_manifests/" + d.SHA1 + ".json"
	}
	return "project.json"
}

// numberedTables returns the tables whose rows have numbers, by the names in ids.json (mail
// §10.6).
func numberedTables() map[string]string {
	return map[string]string{
		"projects": "mail_projects", "agents": "mail_agents", "messages": "mail_messages", "reservations": "mail_reservations",
	}
}

const (
	selectNumber = `SELECT ifnull((SELECT seq FROM sqlite_sequence WHERE name = ?), 0)`
	raiseNumber  = `UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1`
	insertNumber = `INSERT INTO sqlite_sequence (name, seq) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)`
)

// Numbers returns the highest numbers ever assigned, by the names in ids.json: projects, agents,
// messages, reservations. A value is 0 if none was assigned.
func Numbers(ctx context.Context, tx *store.Tx) (map[string]int64, error) {
	out := map[string]int64{}
	for name, table := range numberedTables() {
		var n int64
		if err := tx.Get(ctx, []any{&n}, selectNumber, table); err != nil {
			return nil, err
		}
		out[name] = n
	}
	return out, nil
}

// RaiseNumbers makes the next assigned numbers larger than ids. It never lowers one and ignores
// unknown names.
func RaiseNumbers(ctx context.Context, tx *store.Tx, ids map[string]int64) error {
	tables := numberedTables()
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		table := tables[name]
		if table == "" || ids[name] <= 0 {
			continue
		}
		if _, err := tx.Exec(ctx, raiseNumber, table, ids[name]); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertNumber, table, ids[name]); err != nil {
			return err
		}
	}
	return nil
}
