package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"time"

	"cairn/internal/project"
	"cairn/internal/store"
)

// Kinds of changes, and ops besides put and delete (memories §10.1).
const (
	KindVault   = "vault"
	KindMemory  = "memory"
	KindEntry   = "entry"
	KindContext = "context"

	OpPatch    = "patch"
	OpUndelete = "undelete"
	OpConfirm  = "confirm"
)

// DefaultMemory is the memory_id of the current project's own memory.
const DefaultMemory = "default"

// CallTx is one transaction of one caller, mostly on one memory.
type CallTx struct {
	*Kernel
	Tx     *store.Tx
	Caller Caller
	User   User      // the acting user; the zero User owns nothing
	Memory MemoryRow // once it was opened

	at   project.Project  // the current project, after a default memory was opened
	keys []project.KeyUID // its keys, the strongest first, if they determined the memory

	Syncs []time.Duration // how long entries that were confirmed now had been inflight
}

// MemoryRow is a memory with its project and the state of its stream.
type MemoryRow struct {
	Memory
	Project                              string // the id of the project whose default memory it is
	ProjectUID                           string // the project's uid when that was last logged
	Exists                               bool   // false for a default memory that was never written
	Deleting                             int64
	LastNS, LastCanonicalNS, ContextNS   int64
	HeadSeq, SentSeq, AckedSeq, PurgedNS int64
	RemoteID                             string
	subscribed                           bool // false for a memory that is known from a hub's catalogue alone
}

// MemoryColumns reads a MemoryRow: the columns and the tables of a query.
const MemoryColumns = `m.memory_id, m.user_id, m.vault_id, m.memory_type, m.title, m.description, m.creation_ns,
ifnull(p.id, ''), ifnull(m.project_uid, ''), ifnull(m.deleting_seq, 0), s.last_ns, s.last_canonical_ns, s.context_ns, s.head_seq, s.sent_seq, s.acked_seq,
s.purged_before_ns, ifnull(s.remote_id, ''), s.subscribed
FROM memories m JOIN memory_streams s ON s.stream = m.memory_id LEFT JOIN projects p ON p.key = m.project_key `

const (
	selectAnyMemory    = `SELECT ` + MemoryColumns + `WHERE m.memory_id = ?`
	selectMemory       = selectAnyMemory + ` AND m.deleting_seq IS NULL`
	selectMemoryRemote = `SELECT ` + MemoryColumns + `WHERE m.user_id = ? AND s.remote_id = ? AND m.deleting_seq IS NULL`

	selectOwnPut = `SELECT c.doc FROM changes c JOIN symbols o ON o.id = c.op WHERE c.kind = (SELECT id FROM symbols WHERE text = 'memory')
AND c.id = ? AND c.doc IS NOT NULL AND o.text = 'put' ORDER BY c.seq DESC LIMIT 1`
)

// Scan returns the destinations of MemoryColumns.
func (m *MemoryRow) Scan() []any {
	return []any{&m.MemoryID, &m.ActorID, &m.VaultID, &m.MemoryType, &m.Title, &m.Description, &m.CreationTime, &m.Project, &m.ProjectUID, &m.Deleting,
		&m.LastNS, &m.LastCanonicalNS, &m.ContextNS, &m.HeadSeq, &m.SentSeq, &m.AckedSeq, &m.PurgedNS, &m.RemoteID, &m.subscribed}
}

// Enter returns the CallTx of a call. With creating, it creates the device's own user if there
// is none.
func (b *Kernel) Enter(ctx context.Context, tx *store.Tx, c Caller, creating bool) (*CallTx, error) {
	if c.isNowhere() {
		q, ok, err := project.OfSession(ctx, tx, c.Transport)
		if err != nil {
			return nil, err
		}
		if ok {
			c.ProjectID = q.ID
		}
	}
	u, err := actor(ctx, tx, c, creating)
	return &CallTx{Kernel: b, Tx: tx, Caller: c, User: u}, err
}

// Open finds a memory of the acting user. For a default memory that was never written, Memory.Exists is
// false. Errors: CodeNotFound for a memory that is missing or not the user's.
func (s *CallTx) Open(ctx context.Context, memory string) error {
	if memory == DefaultMemory {
		return s.OpenDefault(ctx)
	}
	found, err := s.FindMemory(ctx, memory)
	if err == nil && !found {
		found, err = s.FindRemote(ctx, memory)
	}
	if err == nil && !found {
		err = NotFound("memory")
	}
	return err
}

// FindMemory finds a memory of the acting user by its id, unless it is being deleted.
func (s *CallTx) FindMemory(ctx context.Context, id string) (bool, error) {
	return s.find(ctx, selectMemory, id)
}

// FindAny is FindMemory, also for a memory that is being deleted.
func (s *CallTx) FindAny(ctx context.Context, id string) (bool, error) {
	return s.find(ctx, selectAnyMemory, id)
}

// FindRemote is FindMemory by the id that the memory has at the hub, if that is another one.
func (s *CallTx) FindRemote(ctx context.Context, id string) (bool, error) {
	return s.find(ctx, selectMemoryRemote, s.User.UserID, id)
}

// find reads one memory. It does not find other users' memories.
func (s *CallTx) find(ctx context.Context, query string, args ...any) (bool, error) {
	m, err := memoryBy(ctx, s.Tx, query, args...)
	if err != nil || !m.Exists || m.ActorID != s.User.UserID {
		return false, err
	}
	s.Memory = m
	return true, nil
}

// AnyMemory reads a memory of any user, also one that is being deleted. The row of a missing
// memory does not exist.
func AnyMemory(ctx context.Context, tx *store.Tx, id string) (MemoryRow, error) {
	return memoryBy(ctx, tx, selectAnyMemory, id)
}

func memoryBy(ctx context.Context, tx *store.Tx, query string, args ...any) (m MemoryRow, err error) {
	err = tx.Get(ctx, m.Scan(), query, args...)
	m.Exists = err == nil
	return m, IgnoreNone(err)
}

func (s *CallTx) currentProject(ctx context.Context) (project.Project, bool, error) {
	if s.Caller.ProjectID != "" {
		return project.Find(ctx, s.Tx, s.Caller.ProjectID)
	}
	return project.Current(ctx, s.Tx, s.Caller.Place)
}

// HubKey returns the key by which a hub identifies a call (memories §9).
func HubKey(method, path, key string) string {
	sum := sha256.Sum256([]byte(method + "\n" + path + "\n" + key))
	return hex.EncodeToString(sum[:])
}

// Exec runs a statement that changes rows.
func (s *CallTx) Exec(ctx context.Context, query string, args ...any) error {
	_, err := s.Tx.Exec(ctx, query, args...)
	return err
}

// Log appends a change of the memory, which the replicator will send.
func (s *CallTx) Log(ctx context.Context, kind, id, op string, doc any) (int64, error) {
	if err := s.introduce(ctx); err != nil {
		return 0, err
	}
	seq, err := s.LogOn(ctx, s.Memory.MemoryID, s.Memory.Project, kind, id, op, doc)
	s.Memory.HeadSeq = max(s.Memory.HeadSeq, seq)
	return seq, err
}

// introduce logs the memory's own put again if the user joined a hub without uploading, because a
// hub must know a memory before its entries.
func (s *CallTx) introduce(ctx context.Context) error {
	if !s.User.IsJoined() || s.Memory.SentSeq > 0 || s.Memory.AckedSeq == 0 || s.Memory.HeadSeq > s.Memory.AckedSeq || s.Memory.RemoteID != "" {
		return nil
	}
	var doc string
	err := s.Tx.Get(ctx, []any{&doc}, selectOwnPut, s.Memory.MemoryID)
	if err == nil {
		s.Memory.HeadSeq, err = s.LogOn(ctx, s.Memory.MemoryID, s.Memory.Project, KindMemory, s.Memory.MemoryID, store.OpPut, json.RawMessage(doc))
	}
	return IgnoreNone(err)
}

// LogOn appends a change to a stream and moves its head.
func (s *CallTx) LogOn(ctx context.Context, stream, project, kind, id, op string, doc any) (int64, error) {
	text, err := DocumentText(doc)
	if err != nil {
		return 0, err
	}
	seq, err := s.Tx.Append(ctx, store.Change{
		Project: project, Stream: stream, Kind: kind, ID: id, Op: op, Doc: text, Session: s.Caller.Session, Agent: s.Caller.Agent,
	})
	if err == nil {
		err = s.Advance(ctx, stream, seq)
	}
	return seq, err
}

// Nullable returns a text for a column in which "" is NULL.
func Nullable(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }

// Note logs a change without a document, which is never sent.
func (s *CallTx) Note(ctx context.Context, stream, kind, id, op string) error {
	_, err := s.Tx.Append(ctx, store.Change{Project: s.Memory.Project, Stream: stream, Kind: kind, ID: id, Op: op, Session: s.Caller.Session, Agent: s.Caller.Agent})
	return err
}

// Path returns the canonical HTTP path of something in the memory.
func (s *CallTx) Path(rest string) string { return "/v1/memories/" + s.Memory.MemoryID + "/" + rest }

// Number returns a number for a column in which 0 is NULL.
func Number(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: n != 0} }

// DocumentText returns a document as JSON. It does not escape HTML characters, so that an entry
// from the change log or an export is equal byte for byte.
func DocumentText(doc any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(doc)
	return bytes.TrimSpace(b.Bytes()), err
}
