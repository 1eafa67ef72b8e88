package observation

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"cairn/internal/oneline"
	"cairn/internal/store"
)

// Tombstones knows what must not come back (observations §11.3): a purged row under
// every key by which the same event may be told again, and whole sessions and
// projects. The keys are salted hashes. Without a purge there is no salt; beside
// the store's own there are those of the stores that it has imported exports of.
type Tombstones struct{ salts [][]byte } // its own first

const (
	selectTombstone = `SELECT until FROM tombstones WHERE hash = ?`

	upsertTombstone = `INSERT INTO tombstones (hash, until) VALUES (?, ?)
ON CONFLICT (hash) DO UPDATE SET until = CASE WHEN until IS NULL OR excluded.until IS NULL THEN NULL
    ELSE max(until, excluded.until) END`
)

// OwnSalt is the name of the store's own salt; another store's has part of itself
// behind it.
const OwnSalt = "tombstone_salt"

// OpenTombstones reads the salts: all that a store costs in which nothing was purged.
func OpenTombstones(ctx context.Context, tx *store.Tx) (g Tombstones, err error) {
	notes, err := tx.MetaUnder(ctx, OwnSalt)
	for _, note := range notes {
		var salt []byte
		if err == nil {
			salt, err = hex.DecodeString(note.Value)
		}
		g.salts = append(g.salts, salt)
	}
	return g, err
}

// MakeTombstones is OpenTombstones for a purge: it creates the salt if there is none.
func MakeTombstones(ctx context.Context, tx *store.Tx) (Tombstones, error) {
	g, err := OpenTombstones(ctx, tx)
	if err != nil || g.Any() {
		return g, err
	}
	salt := make([]byte, sha256.Size)
	rand.Read(salt)
	err = g.AddSalt(ctx, tx, salt)
	return g, err
}

// AddSalt keeps one more salt, as the store's own if it has none.
func (g *Tombstones) AddSalt(ctx context.Context, tx *store.Tx, salt []byte) error {
	if slices.ContainsFunc(g.salts, func(s []byte) bool { return bytes.Equal(s, salt) }) {
		return nil
	}
	name := OwnSalt
	if g.Any() {
		name += "/" + hex.EncodeToString(salt[:8])
	}
	g.salts = append(g.salts, salt)
	return tx.SetMeta(ctx, name, hex.EncodeToString(salt))
}

// Any reports whether anything was ever buried.
func (g Tombstones) Any() bool { return len(g.salts) > 0 }

// Salts are the salts in hex.
func (g Tombstones) Salts() (out []string) {
	for _, s := range g.salts {
		out = append(out, hex.EncodeToString(s))
	}
	return out
}

// TombstoneKey is what a purged thing is known by: its sort and its parts, told apart
// by their lengths.
type TombstoneKey []string

func (k TombstoneKey) hash(salt []byte) []byte {
	h := sha256.New()
	h.Write(salt)
	for _, part := range k {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:16]
}

// Add keeps a key from coming back: permanently, or with its events up to a time
// (Unix seconds).
func (g Tombstones) Add(ctx context.Context, tx *store.Tx, until any, keys ...TombstoneKey) error {
	for _, k := range keys {
		if err := AddTombstone(ctx, tx, k.hash(g.salts[0]), until); err != nil {
			return err
		}
	}
	return nil
}

// AddTombstone stores a tombstone: the hash of a key, and the time up to which it holds (Unix
// seconds), nil for permanently.
func AddTombstone(ctx context.Context, tx *store.Tx, hash []byte, until any) error {
	_, err := tx.Exec(ctx, upsertTombstone, hash, until)
	return err
}

// Holds reports whether one of the keys is buried for what happened at a time.
func (g Tombstones) Holds(ctx context.Context, tx *store.Tx, at int64, keys ...TombstoneKey) (bool, error) {
	for _, k := range keys {
		for _, salt := range g.salts {
			var until sql.NullInt64
			err := tx.Get(ctx, []any{&until}, selectTombstone, k.hash(salt))
			if err == nil && (!until.Valid || at <= until.Int64) {
				return true, nil
			}
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return false, err
			}
		}
	}
	return false, nil
}

func CallKey(session, call string, part int) TombstoneKey {
	return TombstoneKey{"call", session, call, strconv.Itoa(part)}
}

// CopyKey is the key of a call that a resumed or forked session tells again.
func CopyKey(call string, part int, content string) TombstoneKey {
	return TombstoneKey{"copy", call, strconv.Itoa(part), content}
}

func PromptKey(session, prompt string) TombstoneKey { return TombstoneKey{"prompt", session, prompt} }

// SamePromptKey is the key of a prompt for hooks: what is sent while a turn goes on
// shares the id of the turn's prompt and is another one.
func SamePromptKey(session, prompt, content string) TombstoneKey {
	return TombstoneKey{"same prompt", session, prompt, content}
}

func LineKey(line string) TombstoneKey       { return TombstoneKey{"line", line} }
func SessionKey(session string) TombstoneKey { return TombstoneKey{"session", session} }
func ProjectKey(project string) TombstoneKey { return TombstoneKey{"project", project} }

func SessionInProjectKey(session, project string) TombstoneKey {
	return TombstoneKey{"session in project", session, project}
}

// textKey is the key of a row that has no id of its own: what it says, where and
// about when. Steps are width seconds long. Hook and transcript may tell a
// compaction's summary in different words.
func textKey(session, obsType, content, role string, step int64) TombstoneKey {
	at := strconv.FormatInt(step, 10)
	if role == RoleSummary {
		return TombstoneKey{"summary", session, at}
	}
	return TombstoneKey{"text", session, obsType, content, at}
}

// Width is how far apart two tellings of a row without an id may be dated.
func Width(obsType, role string) int64 {
	if role == RoleSummary || obsType != TypePrompt && obsType != TypeMessage {
		return MarkTwin
	}
	return PromptTwin
}

// Around are the keys under which a row without an id may have been buried.
func Around(session, obsType, content, role string, at int64) (keys []TombstoneKey) {
	w := Width(obsType, role)
	for step := at/w - 1; step <= at/w+1; step++ {
		keys = append(keys, textKey(session, obsType, content, role, step))
	}
	return keys
}

// AnyTime stands for the step of a row that is told again at a time that says
// nothing.
const AnyTime = math.MinInt64

// dedupStep is how many seconds after a read or search an equal one may have been
// dropped for it; with the row gone a transcript would bring that one.
const dedupStep = int64(DefaultDedupWindow / time.Second)

// IsRepeatable reports whether equal rows near one of this kind are dropped.
func IsRepeatable(obsType string, failed bool) bool {
	return !failed && (obsType == TypeRead || obsType == TypeSearch)
}

// EqualCallKey is the key of a call of which no id is told again.
func EqualCallKey(session string, l EqualityKey, step int64) TombstoneKey {
	return TombstoneKey{"like", session, l.kind, l.what, strconv.FormatInt(step, 10)}
}

func EqualCallStep(obsType string, failed bool) int64 {
	if IsRepeatable(obsType, failed) {
		return dedupStep
	}
	return MarkTwin
}

// WordsKey is the key of words that a transcript without hooks' ids may tell.
func WordsKey(session, obsType, words string, step int64) TombstoneKey {
	return TombstoneKey{"words", session, obsType, words, strconv.FormatInt(step, 10)}
}

// wordings are the ends of a stored text that such a transcript may tell of it:
// hooks may tell of a message what came before it in the turn (see sameWords).
func wordings(obsType, content string) []string {
	if obsType != TypeMessage {
		return []string{content}
	}
	texts := []string{Wording(content)}
	for i, r := range content {
		if r != '\n' {
			continue
		}
		if text := Wording(content[i+1:]); text != texts[len(texts)-1] {
			texts = append(texts, text)
		}
	}
	return texts
}

// Wording is what tells a message from others.
func Wording(content string) string {
	if over := utf8.RuneCountInString(content) - MessageEnd; over > 0 {
		return content[len(oneline.Cut(content, over)):]
	}
	return content
}

// RowToDelete is a row that is to go, with what its tombstones need.
type RowToDelete struct {
	Id, At, SessionKey        int64
	Session, Project, ObsType string
	UnknownIDs                bool // a hook told it whose ids the session's transcript does not know (see Match)
	Content, Role, Call       string
	PathKey, Command          string
	Failed                    bool
	Part                      int
	Prompt                    sql.NullInt64 // the prompt it stands for
	PromptID, Line            string        // that prompt's
}

// Keys are what the row is to be buried under.
func (d *RowToDelete) Keys() (keys []TombstoneKey) {
	if IsAction(d.ObsType) {
		return d.callKeys()
	}
	if d.PromptID != "" && d.ObsType == TypePrompt {
		keys = append(keys, PromptKey(d.Session, d.PromptID), SamePromptKey(d.Session, d.PromptID, d.Content))
	}
	if d.Line != "" {
		keys = append(keys, LineKey(d.Line))
	}
	step := d.At / Width(d.ObsType, d.Role)
	keys = append(keys, textKey(d.Session, d.ObsType, d.Content, d.Role, step))
	if d.UnknownIDs && d.Line == "" {
		for _, words := range wordings(d.ObsType, d.Content) {
			keys = append(keys, WordsKey(d.Session, d.ObsType, words, step), WordsKey(d.Session, d.ObsType, words, AnyTime))
		}
	}
	return keys
}

// callKeys are the keys of a call.
func (d *RowToDelete) callKeys() (keys []TombstoneKey) {
	like := EqualityKeyOf(d.ObsType, d.PathKey, d.Command, d.Content)
	if d.Call != "" {
		keys = append(keys, CallKey(d.Session, d.Call, d.Part), CopyKey(d.Call, d.Part, d.Content))
	}
	if d.UnknownIDs || IsRepeatable(d.ObsType, d.Failed) {
		keys = append(keys, EqualCallKey(d.Session, like, d.At/EqualCallStep(d.ObsType, d.Failed)))
	}
	if d.UnknownIDs {
		keys = append(keys, EqualCallKey(d.Session, like, AnyTime))
	}
	return keys
}

// EqualityKey is what makes two calls of a session the same where no id tells: what
// kind of thing was done and to what. A write is like an edit of the file, and a
// command like its failure, for hooks and transcripts differ in that.
type EqualityKey struct{ kind, what string }

func EqualityKeyOf(obsType, pathKey, command, content string) EqualityKey {
	switch obsType {
	case TypeWrite, TypeEdit:
		return EqualityKey{TypeEdit, pathKey}
	case TypeRead:
		return EqualityKey{TypeRead, pathKey}
	case TypeCommand, TypeCommandError, TypeGitCommit, TypeGitPush, TypeGitHub:
		return EqualityKey{TypeCommand, command}
	}
	return EqualityKey{obsType, content}
}

// MessageEnd is how many characters of a long message tell it from others.
const MessageEnd = 600

// PromptTwin is how far apart, in seconds, a hook and a transcript may date the
// same prompt (observations §12).
const PromptTwin = 10

// CopyTwin is how far apart, in seconds, a resumed or forked session may date
// what it copied (observations §12).
const CopyTwin = 60

// RoleSummary is the role of a message that sums up what a compaction dropped.
const RoleSummary = "compact_summary"

// MarkTwin is how far apart, in seconds, a hook and a transcript may date the
// same compaction.
const MarkTwin = 60
