package memory

import (
	"context"

	"cairn/internal/store"
)

// origin is where documents come from. It decides what the roads differ in: who owns a
// document, how the change log gets it, and what happens when something here has its name.
type origin int

const (
	// A hub's stream, in the hub's order. Changes are logged as the hub's and never sent.
	fromHub origin = iota
	// An export. What is new is logged as this device's, so that a user who has joined a
	// hub sends it. The present rules of redaction apply.
	fromExport
	// The store's own log, for rows that a salvage has lost. They are logged already.
	fromLog
)

// ImportedMemories counts what became of an export's memories.
type ImportedMemories struct {
	Memories int `json:"memories"` // added
	Entries  int `json:"entries"`  // added
	Contexts int `json:"contexts"` // versions added
	Known    int `json:"known"`    // entries and contexts that were here
	Deleted  int `json:"deleted"`  // entries and contexts left out, because they or their memories were deleted here
	Redacted int `json:"redacted"` // in which the present rules found a secret
}

// Documents stores what comes from elsewhere; nothing else does. Use it in one goroutine.
//
// A document is identified by its id, or by the key under which a hub knows it. A document
// that is here already changes nothing, so that applying it again is safe; only a hub, which
// orders the changes of all devices, moves rows to its own state. What was deleted here
// stays deleted. A document whose prerequisite is missing waits for it: an entry or a
// context for its memory, a patch or a confirmation for its entry.
type Documents struct {
	book     *Service
	from     origin
	vaults   map[string]Vault  // of the origin → of this store
	memories map[string]string // of the origin → of this store, "" for one that was deleted here
	counts   ImportedMemories

	call     *callTx          // what all documents belong to, if it is one transaction of one user
	returned map[string]int64 // changes of a page that were new here, by device incarnation

	made    map[string]*madeRow // memories and entries that came back from the log, by their names
	waiting map[string][]*Item  // by what is missing
}

func newDocuments(b *Service, from origin) *Documents {
	return &Documents{
		book: b, from: from, vaults: map[string]Vault{}, memories: map[string]string{}, returned: map[string]int64{},
		made: map[string]*madeRow{}, waiting: map[string][]*Item{},
	}
}

// NewDocuments returns Documents for the lines of one export, each of which Check and
// References have accepted.
func (b *Service) NewDocuments() *Documents { return newDocuments(b, fromExport) }

// Counts returns what became of the documents so far.
func (d *Documents) Counts() ImportedMemories { return d.counts }

// Apply stores one document. Ids, keys and times stay where nothing else has them. Of an
// export, the vaults of the device's own user there become those of its own user here, of
// which one with the same title is the same. The default memory of a project goes into the
// one that the project has here. Apply is idempotent.
//
// Errors: CodeInvalid for a document that cannot be read, CodeNotFound (NotFound) if a
// vault or memory of that title is just being deleted here, those of the store.
func (d *Documents) Apply(ctx context.Context, tx *store.Tx, doc *Item) error {
	for queue := []*Item{doc}; len(queue) > 0; queue = queue[1:] {
		next := queue[0]
		if next.parsed == nil {
			if err := next.Validate(); err != nil {
				return err
			}
		}
		missing, made, err := d.take(ctx, tx, next)
		if err != nil {
			return err
		}
		for _, name := range missing {
			d.waiting[name] = append(d.waiting[name], next)
		}
		for _, name := range made {
			queue = append(queue, d.waiting[name]...)
			delete(d.waiting, name)
		}
	}
	return nil
}

// take stores one document. missing names the prerequisites of which it lacks one, made
// what others may wait for.
func (d *Documents) take(ctx context.Context, tx *store.Tx, doc *Item) (missing, made []string, err error) {
	if doc.Op == store.OpDelete {
		return nil, nil, d.delete(ctx, tx, doc)
	}
	switch v := doc.parsed.(type) {
	case nil: // blanked, or of a kind that has no rows
		return nil, nil, nil
	case *vaultDoc:
		s, err := d.owner(ctx, tx, doc.Owner)
		if err == nil {
			_, err = d.vault(ctx, s, *v)
		}
		return nil, nil, err
	case *memoryDoc:
		return nil, []string{doc.memory()}, d.memory(ctx, tx, doc, v)
	case *tombstoneDoc:
		return nil, nil, d.tombstone(ctx, tx, doc.Memory, v)
	}
	s, deleted, err := d.open(ctx, tx, doc)
	switch {
	case err != nil:
		return nil, nil, err
	case deleted:
		d.counts.Deleted++
		return nil, nil, nil
	case s == nil:
		return []string{doc.Memory}, nil, nil
	}
	switch v := doc.parsed.(type) {
	case *entryDoc:
		made, err = d.entry(ctx, s, doc, *v)
	case *changeDoc:
		missing, err = d.patch(ctx, s, doc, v)
	case *confirmDoc:
		missing, made, err = d.confirm(ctx, s, doc, v)
	case *contextDoc:
		err = d.context(ctx, s, doc, *v)
	}
	return missing, made, err
}

// memory is the id, at the origin, of the memory that a document is or belongs to.
func (d *Item) memory() string {
	if m, ok := d.parsed.(*memoryDoc); ok && d.Memory == "" {
		return m.MemoryID
	}
	return d.Memory
}

// scope acts as a user of this store.
func (d *Documents) scope(ctx context.Context, tx *store.Tx, user string) (*callTx, error) {
	if d.call != nil {
		return d.call, nil
	}
	u, err := findUser(ctx, tx, user)
	return &callTx{Service: d.book, tx: tx, u: u}, err
}

// owner acts as the user here of one of the origin, "" for the device's own. A user who is
// missing is created.
func (d *Documents) owner(ctx context.Context, tx *store.Tx, id string) (*callTx, error) {
	if id == "" && d.call == nil {
		own, err := ownUser(ctx, tx, true)
		if err != nil {
			return nil, err
		}
		id = own
	}
	s, err := d.scope(ctx, tx, id)
	if err == nil && s.u.ID == "" {
		s.u.ID = id
		_, err = tx.Exec(ctx, insertUser, id, tx.Now().UnixNano())
	}
	return s, err
}

// here returns the id here of a memory of the origin.
func (d *Documents) here(ctx context.Context, s *callTx, memory string) (string, error) {
	if id, ok := d.memories[memory]; ok || d.from != fromHub {
		if !ok {
			id = memory
		}
		return id, nil
	}
	id, err := s.localStream(ctx, memory)
	if err == nil {
		d.memories[memory] = id
	}
	return id, err
}

// open finds the memory of a document and acts as its owner. deleted is true if the memory
// was deleted here; nil if it is not here for another reason.
func (d *Documents) open(ctx context.Context, tx *store.Tx, doc *Item) (s *callTx, deleted bool, err error) {
	s = d.call
	if s == nil {
		s = &callTx{Service: d.book, tx: tx}
	}
	id, err := d.here(ctx, s, doc.Memory)
	if err != nil || id == "" {
		return nil, id == "", err
	}
	m := memoryRow{exists: true}
	if err := tx.Get(ctx, m.scan(), selectAnyMemory, id); err != nil {
		return nil, d.from == fromExport, ignoreNone(err) // deleted by another process just now
	}
	if d.call != nil {
		s.m = m
		if m.ActorID != s.u.ID {
			s = nil // another user's
		}
		return s, false, nil
	}
	if d.from == fromExport && m.deleting != 0 {
		return nil, true, nil
	}
	u, err := findUser(ctx, tx, m.ActorID)
	s.u, s.m = u, m
	return s, false, err
}

// logPulled appends a change of a hub, which is never sent, to a stream.
func (d *Documents) logPulled(ctx context.Context, s *callTx, stream string, doc *Item, id string, text []byte) (int64, error) {
	if doc.Device != "" {
		d.returned[doc.Device]++
	}
	op := doc.Op
	if op == "" {
		op = store.OpPut
	}
	return s.tx.Append(ctx, store.Change{Device: hubDevice, Project: s.m.project, Stream: stream, Kind: doc.Kind, ID: id, Op: op, Doc: text})
}

// redact applies the present rules of redaction. Only an export needs it.
func (d *Documents) redact(text string) string {
	if d.from != fromExport {
		return text
	}
	return d.book.redact(text)
}
