package memory

import (
	"context"
	"errors"

	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/strictjson"
)

// Check reads the document of a line and says what is wrong with it; the error has none
// of its text.
func (l *Line) Check() error {
	docs := map[string]any{
		LineVault: &vaultDoc{}, LineMemory: &exportedMemory{}, LineEntry: &entryDoc{}, LineContext: &contextDoc{}, LineTombstone: &tombstoneDoc{},
	}
	l.parsed = docs[l.Kind]
	if l.parsed == nil || len(l.Doc) == 0 || l.Doc[0] != '{' {
		return errors.New("its doc is not a JSON object")
	}
	switch err := strictjson.Decode(l.Doc, l.parsed); {
	case errors.Is(err, strictjson.ErrMore):
		return errors.New("there is more after its doc")
	case err != nil:
		return errors.New("its doc is not that of its kind")
	}
	return firstError(l.checkPlace(), l.checkDoc())
}

// checkPlace checks which fields besides the document a line has.
func (l *Line) checkPlace() error {
	ofMemory := l.Kind != LineVault && l.Kind != LineMemory
	switch {
	case l.Owner != "" && l.Kind != LineVault, l.Project != "" && l.Kind != LineMemory, (l.Memory != "") != ofMemory:
		return errors.New("it has a field that lines of its kind do not have")
	case l.Owner != "" && !isID(l.Owner), ofMemory && !isID(l.Memory):
		return errors.New("one of its ids is not valid")
	}
	return nil
}

// isID reports whether a text is an id as the store spells it.
func isID(text string) bool {
	id, ok := ParseID(text)
	return ok && id == text
}

// errID, errUnsound and errLineTime are what Check says of a document.
var (
	errID       = errors.New("one of its ids is not valid")
	errUnsound  = errors.New("its text breaks a rule for texts of its kind")
	errLineTime = errors.New("its time is out of range")
)

func (l *Line) checkDoc() error {
	unsound := func(errs ...error) error {
		if firstError(errs...) != nil {
			return errUnsound
		}
		return nil
	}
	ids := func(ids ...string) error {
		for _, id := range ids {
			if !isID(id) {
				return errID
			}
		}
		return nil
	}
	validTime := func(at Time) error {
		if at <= 0 {
			return errLineTime
		}
		return nil
	}
	switch d := l.parsed.(type) {
	case *vaultDoc:
		return firstError(ids(d.VaultID), unsound(ValidateTitle(d.Title, d.Description)), validTime(d.CreationTime))
	case *exportedMemory:
		return firstError(ids(d.MemoryID, d.VaultID), validTime(d.CreationTime),
			unsound(ValidateTitle(d.Title, d.Description), ValidateType(d.MemoryType), checkLength("projectUid", d.ProjectUID, uidDigits)))
	case *entryDoc:
		return firstError(d.checkIDs(ids), validTime(d.CreationTime), validTime(d.CapturedTime), d.checkTexts(unsound))
	case *contextDoc:
		err := ids(d.ContextID, d.SessionID)
		for _, id := range []string{d.base(), d.ConflictWith} {
			if err == nil && id != "" {
				err = ids(id)
			}
		}
		return firstError(err, validTime(d.UpdatedAt), checkKeyOf(d.Key), unsound(ValidateContext(d.Markdown, maxLine), checkLength("traceparent", d.Trace, maxKey)))
	case *tombstoneDoc:
		if !isID(d.ID) && checkKeyOf(d.ID) != nil || d.ID == "" {
			return errID
		}
		return validTime(d.At)
	}
	return nil
}

// checkKeyOf checks the key under which a hub knows something, "" for none.
func checkKeyOf(key string) error {
	if checkLength("key", key, maxKey) != nil {
		return errID
	}
	return nil
}

func (d *entryDoc) checkIDs(ids func(...string) error) error {
	if d.LocalID != "" {
		return errID // it is a device's
	}
	for _, id := range []string{d.EntryID, d.SessionID, d.CorrectedEntryID} {
		if id != "" && ids(id) != nil {
			return errID
		}
	}
	if d.EntryID == "" && d.Key == "" {
		return errID // it could not be known again
	}
	return checkKeyOf(d.Key)
}

func (d *entryDoc) checkTexts(unsound func(...error) error) (err error) {
	d.Metadata, err = ValidateEntry(d.RawEntry, d.Summary, d.Tags, d.Metadata)
	return unsound(err, checkLength("correctionReason", d.CorrectionReason, maxReason), checkLength("traceparent", d.Trace, maxKey))
}

// References judges the memories of an export line by line: that their order is right,
// and that what they refer to stands before them. The zero value is ready; it is used by
// one goroutine.
type References struct {
	vaults, memories map[string]bool
	stage            int
}

// The order of lines.
var lineStages = map[string]int{LineVault: 0, LineMemory: 1, LineEntry: 2, LineContext: 2, LineTombstone: 2}

// Check reports what is wrong with a line after those before it, "" if nothing.
// hasProject reports whether the file has a project.
func (r *References) Check(l *Line, hasProject func(id string) bool) string {
	if r.vaults == nil {
		r.vaults, r.memories = map[string]bool{}, map[string]bool{}
	}
	stage := lineStages[l.Kind]
	if stage < r.stage {
		return "it does not stand where lines of its kind belong"
	}
	r.stage = stage
	switch d := l.parsed.(type) {
	case *vaultDoc:
		if r.vaults[d.VaultID] {
			return "this vault stands here for the second time"
		}
		r.vaults[d.VaultID] = true
	case *exportedMemory:
		switch {
		case r.memories[d.MemoryID]:
			return "this memory stands here for the second time"
		case !r.vaults[d.VaultID]:
			return "it refers to a vault that the file does not have before it"
		case l.Project != "" && !hasProject(l.Project):
			return "it refers to a project that the file does not have"
		}
		r.memories[d.MemoryID] = true
	case *tombstoneDoc: // its memory may be what was deleted
	default:
		if !r.memories[l.Memory] {
			return "it refers to a memory that the file does not have before it"
		}
	}
	return ""
}

// ImportedMemories counts what became of an export's memories.
type ImportedMemories struct {
	Memories int `json:"memories"` // added
	Entries  int `json:"entries"`  // added
	Contexts int `json:"contexts"` // versions added
	Known    int `json:"known"`    // entries and contexts that were here
	Deleted  int `json:"deleted"`  // entries and contexts left out, because they or their memories were deleted here
	Redacted int `json:"redacted"` // in which the present rules found a secret
}

// ExportImporter takes the memories of an export over, line by line, each of which
// References has found sound. It is used by one goroutine.
type ExportImporter struct {
	book     *Service
	vaults   map[string]Vault  // of the file → of this store
	memories map[string]string // of the file → of this store, "" for one that was deleted here
	counts   ImportedMemories
}

// NewExportImporter returns an importer for one export.
func (b *Service) NewExportImporter() *ExportImporter {
	return &ExportImporter{book: b, vaults: map[string]Vault{}, memories: map[string]string{}}
}

// Counts is what became of the lines so far.
func (r *ExportImporter) Counts() ImportedMemories { return r.counts }

// Line takes one line over. Ids, keys and times stay where nothing else has them. The
// vaults of the device's own user there become those of its own user here, of which one
// with the same title is the same. The default memory of a project goes into the one
// that the project has here. What is here stays as it is, and what was deleted here
// stays deleted; repeating it adds nothing. What is new is logged as this device's: a
// user who has joined a hub sends it.
//
// Errors: CodeNotFound (NotFound) if a vault or memory of that title is just being
// deleted here, those of the store.
func (r *ExportImporter) Line(ctx context.Context, tx *store.Tx, l *Line) error {
	switch d := l.parsed.(type) {
	case *vaultDoc:
		return r.vault(ctx, tx, l.Owner, *d)
	case *exportedMemory:
		return r.memory(ctx, tx, l.Project, d)
	case *tombstoneDoc:
		return r.tombstone(ctx, tx, l.Memory, d)
	}
	s, err := r.open(ctx, tx, l.Memory)
	if err != nil || s == nil {
		return err
	}
	if d, ok := l.parsed.(*contextDoc); ok {
		return r.context(ctx, s, *d)
	}
	return r.entry(ctx, s, *l.parsed.(*entryDoc))
}

// callTx acts as a user of this store.
func (r *ExportImporter) scope(ctx context.Context, tx *store.Tx, user string) (*callTx, error) {
	u, err := findUser(ctx, tx, user)
	return &callTx{Service: r.book, tx: tx, u: u}, err
}

// owner is the user here of one of the file.
func (r *ExportImporter) owner(ctx context.Context, tx *store.Tx, id string) (*callTx, error) {
	if id == "" {
		own, err := ownUser(ctx, tx, true)
		if err != nil {
			return nil, err
		}
		id = own
	}
	s, err := r.scope(ctx, tx, id)
	if err == nil && s.u.ID == "" {
		s.u.ID = id
		_, err = tx.Exec(ctx, insertUser, id, tx.Now().UnixNano())
	}
	return s, err
}

func (r *ExportImporter) vault(ctx context.Context, tx *store.Tx, owner string, d vaultDoc) error {
	s, err := r.owner(ctx, tx, owner)
	if err != nil {
		return err
	}
	d.Description = r.redact(d.Description)
	id := d.VaultID
	v, err := s.vault(ctx, id)
	if err == nil {
		r.vaults[id] = v
		return nil
	}
	v, found, err := s.vaultTitled(ctx, d.Title)
	if err != nil {
		return err
	}
	if found {
		if v, err = s.vault(ctx, v.VaultID); err == nil { // not one that is being deleted
			r.vaults[id] = v
		}
		return err
	}
	var taken bool // by another user
	if err := tx.Get(ctx, []any{&taken}, selectVaultAny, id); err != nil {
		return err
	}
	v = Vault{VaultID: id, ActorID: s.u.ID, Title: d.Title, Description: d.Description, CreationTime: d.CreationTime}
	if taken {
		v.VaultID = NewID()
	}
	r.vaults[id] = v
	return s.putVault(ctx, v, hubKey("POST", "/v1/vaults", v.VaultID))
}

func (r *ExportImporter) memory(ctx context.Context, tx *store.Tx, projectID string, d *exportedMemory) error {
	v := r.vaults[d.VaultID]
	s, err := r.scope(ctx, tx, v.ActorID)
	if err != nil {
		return err
	}
	id, q, err := r.memoryHere(ctx, s, projectID, v, d)
	if err != nil || id != "" {
		r.memories[d.MemoryID] = id
		return err
	}
	s.m.MemoryID = d.MemoryID
	if gone, err := s.buried(ctx, d.MemoryID); err != nil || gone {
		r.memories[d.MemoryID] = ""
		return err
	}
	var taken bool // by another user
	if err := tx.Get(ctx, []any{&taken}, selectMemoryExists, d.MemoryID); err != nil {
		return err
	}
	m := Memory{MemoryID: d.MemoryID, ActorID: s.u.ID, VaultID: v.VaultID, MemoryType: d.MemoryType, Title: d.Title,
		Description: r.redact(d.Description), CreationTime: d.CreationTime}
	if taken {
		m.MemoryID = NewID()
	}
	r.memories[d.MemoryID] = m.MemoryID
	r.counts.Memories++
	if err := s.putMemory(ctx, m, v, q, hubKey("POST", "/v1/vaults/"+v.VaultID+"/memories", m.MemoryID)); err != nil || q != nil || d.ProjectUID == "" {
		return err
	}
	_, err = tx.Exec(ctx, updateUID, m.MemoryID, d.ProjectUID)
	return err
}

// memoryHere finds the memory that one of the file is here: by its id, as the default
// memory of its project, else by its title. If there is none, q is the project whose
// default memory it becomes, nil for none.
func (r *ExportImporter) memoryHere(ctx context.Context, s *callTx, projectID string, v Vault, d *exportedMemory) (id string, q *owner, err error) {
	found, err := s.find(ctx, selectMemory, d.MemoryID)
	if err != nil || found {
		return s.m.MemoryID, nil, err
	}
	if projectID != "" {
		s.c.ProjectID = projectID
		if err := s.openDefault(ctx); err != nil || s.m.exists {
			return s.m.MemoryID, nil, err
		}
		at, err := project.Ensure(ctx, s.tx, projectID)
		if err != nil {
			return "", nil, err
		}
		keys, err := project.KeysOf(ctx, s.tx, at)
		if err != nil {
			return "", nil, err
		}
		q = &owner{at, keys}
	}
	var titled string
	if err := ignoreNone(s.tx.Get(ctx, []any{&titled}, selectTitled, v.VaultID, d.Title)); err != nil || titled == "" {
		return "", q, err
	}
	if found, err = s.find(ctx, selectMemory, titled); err == nil && !found {
		err = notFound("memory") // it is being deleted
	}
	return titled, nil, err
}

// open is the scope of a memory of the file; nil for one that was deleted here.
func (r *ExportImporter) open(ctx context.Context, tx *store.Tx, memory string) (*callTx, error) {
	id := r.memories[memory]
	if id == "" {
		r.counts.Deleted++
		return nil, nil
	}
	s := &callTx{Service: r.book, tx: tx}
	var m memoryRow
	if err := tx.Get(ctx, m.scan(), selectMemory, id); err != nil {
		r.counts.Deleted++ // by somebody else just now
		return nil, ignoreNone(err)
	}
	m.exists = true
	u, err := findUser(ctx, tx, m.ActorID)
	s.u, s.m = u, m
	return s, err
}

const selectTimeTaken = `SELECT EXISTS (SELECT 1 FROM memory_entries WHERE memory_id = ? AND canonical_ns = ?)`

func (r *ExportImporter) entry(ctx context.Context, s *callTx, d entryDoc) error {
	_, found, err := s.held(ctx, d.Key, d.EntryID)
	if err != nil || found {
		r.counts.Known++
		return err
	}
	gone, err := s.buried(ctx, d.EntryID, d.Key)
	if err != nil || gone {
		r.counts.Deleted++
		return err
	}
	r.clean(&d)
	e, err := s.rowOf(&d, d.Key)
	if err != nil {
		return err
	}
	e.synced = d.EntryID != "" || !s.u.hub()
	if e.synced && e.EntryID == "" {
		e.EntryID = NewID()
	}
	if err := s.freeTime(ctx, &e); err != nil {
		return err
	}
	r.counts.Entries++
	return s.insertLogged(ctx, &e)
}

// freeTime moves the time of a committed row that is to be inserted to the next one that
// no other entry of the memory has.
func (s *callTx) freeTime(ctx context.Context, e *entryRow) error {
	for taken := e.synced; taken; {
		if err := s.tx.Get(ctx, []any{&taken}, selectTimeTaken, e.MemoryID, e.CreationTime); err != nil {
			return err
		}
		if taken {
			e.CreationTime++
		}
	}
	e.creationNS = e.CreationTime
	return nil
}

// clean applies the present rules of redaction.
func (r *ExportImporter) clean(d *entryDoc) {
	a := r.book.redacted(NewEntry{RawEntry: d.RawEntry, Summary: d.Summary, Tags: d.Tags, Metadata: d.Metadata})
	reason := r.redact(d.CorrectionReason)
	if a.RawEntry != d.RawEntry || a.Summary != d.Summary || !sameEntry(&Entry{Tags: a.Tags}, &Entry{Tags: d.Tags}) ||
		string(a.Metadata) != string(d.Metadata) || reason != d.CorrectionReason {
		r.counts.Redacted++
	}
	d.RawEntry, d.Summary, d.Tags, d.Metadata, d.CorrectionReason = a.RawEntry, a.Summary, a.Tags, a.Metadata, reason
}

func (r *ExportImporter) redact(text string) string { return r.book.redact(text) }

const selectContextHeld = `SELECT seq FROM memory_contexts WHERE context_id = ? OR hub_key = ?`

func (r *ExportImporter) context(ctx context.Context, s *callTx, d contextDoc) error {
	var seq int64
	if err := ignoreNone(s.tx.Get(ctx, []any{&seq}, selectContextHeld, d.ContextID, nullable(d.Key))); err != nil || seq != 0 {
		r.counts.Known++
		return err
	}
	if clean := r.redact(d.Markdown); clean != d.Markdown {
		d.Markdown = clean
		r.counts.Redacted++
	}
	d.SeenSeq = 0
	change, err := s.log(ctx, KindContext, d.ContextID, store.OpPut, d)
	if err != nil {
		return err
	}
	r.counts.Contexts++
	return s.insertContextDoc(ctx, d, contextPlace{key: d.Key, synced: !s.u.hub(), change: change})
}

func (r *ExportImporter) tombstone(ctx context.Context, tx *store.Tx, memory string, d *tombstoneDoc) error {
	s := &callTx{Service: r.book, tx: tx}
	if id := r.memories[memory]; id != "" {
		memory = id
	}
	var there bool
	if err := tx.Get(ctx, []any{&there}, selectMemoryExists, d.ID); err != nil || there {
		return err
	}
	_, found, err := s.held(ctx, d.ID, d.ID)
	if err != nil || found {
		return err // what is here stays
	}
	_, err = tx.Exec(ctx, insertTombstone, memory, d.ID, d.At)
	return err
}
