package memory

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"cairn/internal/memory/rules"
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

// callTx is one transaction of one caller, mostly on one memory.
type callTx struct {
	*Service
	tx *store.Tx
	c  Caller
	u  user
	m  memoryRow

	at   project.Project  // the current project, after a default memory was opened
	keys []project.KeyUID // its keys, the strongest first, if they determined the memory

	given map[string]bool // the uids of projects whose default memories the hub's catalogue names

	syncs []time.Duration // the times that confirmed entries were inflight
}

// memoryRow is a memory with its project and the state of its stream.
type memoryRow struct {
	Memory
	project                              string // the id of the project whose default memory it is
	projectUID                           string // the project's uid when that was last logged
	exists                               bool   // false for a default memory that was never written
	deleting                             int64
	lastNS, lastCanonicalNS, contextNS   int64
	headSeq, sentSeq, ackedSeq, purgedNS int64
	remoteID                             string
	subscribed                           bool // false for a memory that is known from a hub's catalogue alone
}

const (
	memoryColumns = `m.memory_id, m.user_id, m.vault_id, m.memory_type, m.title, m.description, m.creation_ns,
ifnull(p.id, ''), ifnull(m.project_uid, ''), ifnull(m.deleting_seq, 0), s.last_ns, s.last_canonical_ns, s.context_ns, s.head_seq, s.sent_seq, s.acked_seq,
s.purged_before_ns, ifnull(s.remote_id, ''), s.subscribed
FROM memories m JOIN memory_streams s ON s.stream = m.memory_id LEFT JOIN projects p ON p.key = m.project_key `
	selectAnyMemory    = `SELECT ` + memoryColumns + `WHERE m.memory_id = ?`
	selectMemory       = selectAnyMemory + ` AND m.deleting_seq IS NULL`
	selectMemoryRemote = `SELECT ` + memoryColumns + `WHERE m.user_id = ? AND s.remote_id = ? AND m.deleting_seq IS NULL`

	selectOwnPut = `SELECT c.doc FROM changes c JOIN symbols o ON o.id = c.op WHERE c.kind = (SELECT id FROM symbols WHERE text = 'memory')
AND c.id = ? AND c.doc IS NOT NULL AND o.text = 'put' ORDER BY c.seq DESC LIMIT 1`

	upsertStream = `INSERT INTO memory_streams (stream, user_id, lane, head_seq, subscribed) VALUES (?1, ?2, ?3, ?4, 1)
ON CONFLICT (stream) DO UPDATE SET subscribed = 1, acked_seq = CASE WHEN acked_seq >= head_seq THEN max(acked_seq, excluded.head_seq - 1) ELSE acked_seq END,
head_seq = max(head_seq, excluded.head_seq)`
)

func (m *memoryRow) scan() []any {
	return []any{&m.MemoryID, &m.ActorID, &m.VaultID, &m.MemoryType, &m.Title, &m.Description, &m.CreationTime, &m.project, &m.projectUID, &m.deleting,
		&m.lastNS, &m.lastCanonicalNS, &m.contextNS, &m.headSeq, &m.sentSeq, &m.ackedSeq, &m.purgedNS, &m.remoteID, &m.subscribed}
}

// enter returns the callTx of a call. With creating, it creates the device's own user if there
// is none.
func (b *Service) enter(ctx context.Context, tx *store.Tx, c Caller, creating bool) (*callTx, error) {
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
	return &callTx{Service: b, tx: tx, c: c, u: u}, err
}

// memoryArg checks a memory_id argument: a UUID or `default`.
func memoryArg(text string) (string, error) {
	if text == DefaultMemory {
		return text, nil
	}
	id, err := rules.UUIDArg("memory_id", text)
	if err != nil && text != "" {
		return "", invalid("memory_id", "memory_id is neither a UUID nor %s", DefaultMemory)
	}
	return id, err
}

// shardKey returns the key that determines the shard of a memory's jobs: its id, which is looked
// up for the default memory.
func (b *Service) shardKey(ctx context.Context, c Caller, memory string) (key string, err error) {
	if err := c.checkArgs(); err != nil || memory != DefaultMemory {
		return memory, err
	}
	key = memory + ":" + c.ProjectID + ":" + c.Place.Root // as long as the project does not exist
	err = b.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		if err := s.openDefault(ctx); err != nil {
			return err
		}
		if s.m.MemoryID != "" {
			key = s.m.MemoryID
		}
		return nil
	})
	return key, err
}

// open finds a memory of the acting user. For a default memory that was never written, exists is
// false. Errors: CodeNotFound for a memory that is missing or not the user's.
func (s *callTx) open(ctx context.Context, memory string) error {
	if memory == DefaultMemory {
		return s.openDefault(ctx)
	}
	found, err := s.find(ctx, selectMemory, memory)
	if err == nil && !found {
		found, err = s.find(ctx, selectMemoryRemote, s.u.ID, memory)
	}
	if err == nil && !found {
		err = notFound("memory")
	}
	return err
}

// find reads one memory. It does not find other users' memories.
func (s *callTx) find(ctx context.Context, query string, args ...any) (bool, error) {
	m := memoryRow{exists: true}
	err := s.tx.Get(ctx, m.scan(), query, args...)
	if err != nil {
		return false, ignoreNone(err)
	}
	if m.ActorID != s.u.ID {
		return false, nil
	}
	s.m = m
	return true, nil
}

func (s *callTx) currentProject(ctx context.Context) (project.Project, bool, error) {
	if s.c.ProjectID != "" {
		return project.Find(ctx, s.tx, s.c.ProjectID)
	}
	return project.Current(ctx, s.tx, s.c.Place)
}

// titleOf returns the title that a project's vault had in stores of earlier releases.
func titleOf(project string) string {
	if rules.CheckTitle(project) == nil {
		return project
	}
	title := strings.Map(func(r rune) rune {
		if rules.IsTitleRune(r) {
			return r
		}
		return '-'
	}, project)
	sum := sha256.Sum256([]byte(project))
	return title[:min(len(title), 41)] + "-" + hex.EncodeToString(sum[:4])
}

// hubKey returns the key by which a hub identifies a call (memories §9).
func hubKey(method, path, key string) string {
	sum := sha256.Sum256([]byte(method + "\n" + path + "\n" + key))
	return hex.EncodeToString(sum[:])
}

// log appends a change of the memory, which the replicator will send.
func (s *callTx) log(ctx context.Context, kind, id, op string, doc any) (int64, error) {
	if err := s.introduce(ctx); err != nil {
		return 0, err
	}
	seq, err := s.logOn(ctx, s.m.MemoryID, s.m.project, kind, id, op, doc)
	s.m.headSeq = max(s.m.headSeq, seq)
	return seq, err
}

// introduce logs the memory's own put again if the user joined a hub without uploading, because a
// hub must know a memory before its entries.
func (s *callTx) introduce(ctx context.Context) error {
	if !s.u.hub() || s.m.sentSeq > 0 || s.m.ackedSeq == 0 || s.m.headSeq > s.m.ackedSeq || s.m.remoteID != "" {
		return nil
	}
	var doc string
	err := s.tx.Get(ctx, []any{&doc}, selectOwnPut, s.m.MemoryID)
	if err == nil {
		s.m.headSeq, err = s.logOn(ctx, s.m.MemoryID, s.m.project, KindMemory, s.m.MemoryID, store.OpPut, json.RawMessage(doc))
	}
	return ignoreNone(err)
}

// logOn appends a change to a stream and moves its head.
func (s *callTx) logOn(ctx context.Context, stream, project, kind, id, op string, doc any) (int64, error) {
	text, err := documentText(doc)
	if err != nil {
		return 0, err
	}
	seq, err := s.tx.Append(ctx, store.Change{
		Project: project, Stream: stream, Kind: kind, ID: id, Op: op, Doc: text, Session: s.c.Session, Agent: s.c.Agent,
	})
	if err == nil {
		_, err = s.tx.Exec(ctx, upsertStream, stream, s.u.ID, LaneOf(stream), seq)
	}
	return seq, err
}

// redact removes secrets from a text.
func (b *Service) redact(text string) string {
	if b.config.Filter == nil || text == "" {
		return text
	}
	text, _ = b.config.Filter.Text(text)
	return text
}

// nullable returns a text for a column in which "" is NULL.
func nullable(text string) sql.NullString { return sql.NullString{String: text, Valid: text != ""} }
