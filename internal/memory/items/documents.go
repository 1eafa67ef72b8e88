package items

import (
	"context"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/store"
)

// origin is the source of items. It determines who owns an item, how it is logged, and what
// happens if a row here has the same name.
type origin int

const (
	// A hub's stream, in the hub's order. Changes are logged as the hub's and never sent.
	fromHub origin = iota
	// An export. New rows are logged as changes of this device, so that they are sent if the
	// user has joined a hub. The present rules of redaction apply.
	fromExport
	// The store's own log, for rows that a salvage has lost. They are not logged again.
	fromLog
)

// ImportedMemories counts the results of an import of memories.
type ImportedMemories struct {
	Memories int `json:"memories"` // added
	Entries  int `json:"entries"`  // added
	Contexts int `json:"contexts"` // versions added
	Known    int `json:"known"`    // entries and contexts that existed already
	Deleted  int `json:"deleted"`  // entries and contexts not added, because they or their memories were deleted here
	Redacted int `json:"redacted"` // entries and contexts in which the present rules found a secret
}

// Documents applies the items of one origin. All rows that come from elsewhere are stored by it.
// Use it in one goroutine.
//
// An item is identified by its id, or by its hub key. An item that exists already changes nothing,
// except that a hub, which orders the changes of all devices, updates rows to its own state. What
// was deleted here stays deleted. An item whose prerequisite is missing waits for it: an entry or
// a context for its memory, a patch or a confirmation for its entry.
type Documents struct {
	book     *memory.Kernel
	from     origin
	vaults   map[string]memory.Vault // by the id at the origin
	memories map[string]string       // by the id at the origin; "" for a memory that was deleted here
	counts   ImportedMemories

	call     *memory.CallTx   // the transaction of all items, if they belong to one user
	returned map[string]int64 // the number of a page's changes that were new here, by device incarnation
	given    map[string]bool  // the uids of projects whose default memories the hub's catalogue names

	made    map[string]*madeRow // memories and entries restored from the log, by their names
	waiting map[string][]*Item  // by the name of the missing prerequisite
}

func newDocuments(b *memory.Kernel, from origin) *Documents {
	return &Documents{
		book: b, from: from, vaults: map[string]memory.Vault{}, memories: map[string]string{}, returned: map[string]int64{},
		made: map[string]*madeRow{}, waiting: map[string][]*Item{},
	}
}

// OfHub returns Documents for the items of a user's hub. The user becomes the acting user.
func OfHub(ctx context.Context, s *memory.CallTx, user string) (d *Documents, err error) {
	d = newDocuments(s.Kernel, fromHub)
	d.call = s
	s.User, err = memory.FindUser(ctx, s.Tx, user)
	return d, err
}

// ApplyPage applies a page of a stream of the hub and returns the local id of the stream.
func (d *Documents) ApplyPage(ctx context.Context, stream string, docs []Item) (local string, err error) {
	for i := range docs {
		docs[i].Memory = stream
		if err := d.Apply(ctx, d.call.Tx, &docs[i]); err != nil {
			return "", err
		}
	}
	if err := d.call.Tx.CountReturned(ctx, d.returned); err != nil {
		return "", err
	}
	return d.here(ctx, d.call, stream)
}

// NewDocuments returns Documents for the lines of one export. Check and References must have
// accepted each line.
func (b *Items) NewDocuments() *Documents { return newDocuments(b.Kernel, fromExport) }

// Counts returns the results so far.
func (d *Documents) Counts() ImportedMemories { return d.counts }

// Apply stores one item. Ids, keys and times are kept unless another row has them. In an export,
// the vaults of the device's own user become vaults of the own user here; a vault with the same
// title is the same vault. The default memory of a project is merged into the project's default
// memory here. Apply is idempotent.
//
// Errors: CodeInvalid for an item that is not readable, CodeNotFound (NotFound) if a vault or
// memory of that title is being deleted here, those of the store.
func (d *Documents) Apply(ctx context.Context, tx *store.Tx, item *Item) error {
	for queue := []*Item{item}; len(queue) > 0; queue = queue[1:] {
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

// take stores one item. missing names the prerequisites if it has none of them; made names what
// other items may wait for.
func (d *Documents) take(ctx context.Context, tx *store.Tx, doc *Item) (missing, made []string, err error) {
	if doc.Op == store.OpDelete {
		return nil, nil, d.delete(ctx, tx, doc)
	}
	switch v := doc.parsed.(type) {
	case nil: // blanked, or of a kind without rows
		return nil, nil, nil
	case *memory.VaultDoc:
		s, err := d.owner(ctx, tx, doc.Owner)
		if err == nil {
			_, err = d.vault(ctx, s, *v)
		}
		return nil, nil, err
	case *memory.MemoryDoc:
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
	case *contents.EntryDoc:
		made, err = d.entry(ctx, s, doc, *v)
	case *contents.ChangeDoc:
		missing, err = d.patch(ctx, s, doc, v)
	case *contents.ConfirmDoc:
		missing, made, err = d.confirm(ctx, s, doc, v)
	case *contents.ContextDoc:
		err = d.context(ctx, s, doc, *v)
	}
	return missing, made, err
}

// memory returns the origin's id of the memory that an item is or belongs to.
func (d *Item) memory() string {
	if m, ok := d.parsed.(*memory.MemoryDoc); ok && d.Memory == "" {
		return m.MemoryID
	}
	return d.Memory
}

// scope returns the CallTx of a user of this store.
func (d *Documents) scope(ctx context.Context, tx *store.Tx, user string) (*memory.CallTx, error) {
	if d.call != nil {
		return d.call, nil
	}
	u, err := memory.FindUser(ctx, tx, user)
	return &memory.CallTx{Kernel: d.book, Tx: tx, User: u}, err
}

// owner returns the CallTx of a user of the origin, "" for the device's own. It creates a missing
// user.
func (d *Documents) owner(ctx context.Context, tx *store.Tx, id string) (*memory.CallTx, error) {
	if id == "" && d.call == nil {
		own, err := memory.OwnUser(ctx, tx, true)
		if err != nil {
			return nil, err
		}
		id = own
	}
	s, err := d.scope(ctx, tx, id)
	if err == nil && s.User.UserID == "" {
		s.User.UserID = id
		err = memory.PutUser(ctx, tx, id)
	}
	return s, err
}

// here returns the local id of a memory of the origin.
func (d *Documents) here(ctx context.Context, s *memory.CallTx, memoryID string) (string, error) {
	if id, ok := d.memories[memoryID]; ok || d.from != fromHub {
		if !ok {
			id = memoryID
		}
		return id, nil
	}
	id, err := s.LocalStream(ctx, memoryID)
	if err == nil {
		d.memories[memoryID] = id
	}
	return id, err
}

// open returns the CallTx of the owner of an item's memory. It is nil if the memory is missing;
// deleted is true if the memory was deleted here.
func (d *Documents) open(ctx context.Context, tx *store.Tx, doc *Item) (s *memory.CallTx, deleted bool, err error) {
	s = d.call
	if s == nil {
		s = &memory.CallTx{Kernel: d.book, Tx: tx}
	}
	id, err := d.here(ctx, s, doc.Memory)
	if err != nil || id == "" {
		return nil, id == "", err
	}
	m, err := memory.AnyMemory(ctx, tx, id)
	if err != nil || !m.Exists {
		return nil, d.from == fromExport, err // another process may have just deleted it
	}
	if d.call != nil {
		s.Memory = m
		if m.ActorID != s.User.UserID {
			s = nil // another user's
		}
		return s, false, nil
	}
	if d.from == fromExport && m.Deleting != 0 {
		return nil, true, nil
	}
	u, err := memory.FindUser(ctx, tx, m.ActorID)
	s.User, s.Memory = u, m
	return s, false, err
}

// logPulled appends a change of a hub to a stream. It is never sent.
func (d *Documents) logPulled(ctx context.Context, s *memory.CallTx, stream string, doc *Item, id string, text []byte) (int64, error) {
	if doc.Device != "" {
		d.returned[doc.Device]++
	}
	op := doc.Op
	if op == "" {
		op = store.OpPut
	}
	return s.Tx.Append(ctx, store.Change{Device: memory.HubDevice, Project: s.Memory.Project, Stream: stream, Kind: doc.Kind, ID: id, Op: op, Doc: text})
}

// redact applies the present rules of redaction to texts of an export.
func (d *Documents) redact(text string) string {
	if d.from != fromExport {
		return text
	}
	return d.book.Redact(text)
}
