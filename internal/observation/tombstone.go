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

// Tombstones identifies purged data that must not be stored again (observations §11.3): rows,
// under every key by which the same event may be delivered again, and whole sessions and
// projects. The keys are salted hashes. There is no salt before the first purge. In addition to
// the store's own salt there are the salts of stores whose exports were imported.
type Tombstones struct{ salts [][]byte } // the store's own salt first

const (
	selectTombstone = `SELECT until FROM tombstones WHERE hash = ?`

	upsertTombstone = `INSERT INTO tombstones (hash, until) VALUES (?, ?)
ON CONFLICT (hash) DO UPDATE SET until = CASE WHEN until IS NULL OR excluded.until IS NULL THEN NULL
    ELSE max(until, excluded.until) END`
)

// OwnSalt is the name of the store's own salt. The name of another store's salt has a part of
// that salt as a suffix.
const OwnSalt = "tombstone_salt"

// OpenTombstones reads the salts. A store without a purge needs no further reads.
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

// MakeTombstones opens the tombstones for a purge. It creates the salt if there is none.
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

// AddSalt stores another salt, as the store's own if it has none. It is idempotent.
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

// Any reports whether anything was ever purged.
func (g Tombstones) Any() bool { return len(g.salts) > 0 }

// Salts returns the salts in hex.
func (g Tombstones) Salts() (out []string) {
	for _, s := range g.salts {
		out = append(out, hex.EncodeToString(s))
	}
	return out
}

// TombstoneKey identifies a purged row, session or project by its kind and further parts. The
// hash includes the length of each part.
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

// Add stores tombstones for keys. They apply permanently if until is nil, else to events up to
// that time (Unix seconds).
func (g Tombstones) Add(ctx context.Context, tx *store.Tx, until any, keys ...TombstoneKey) error {
	for _, k := range keys {
		if err := AddTombstone(ctx, tx, k.hash(g.salts[0]), until); err != nil {
			return err
		}
	}
	return nil
}

// AddTombstone stores a tombstone: the hash of a key and the time up to which it applies (Unix
// seconds), nil for permanently. Of two times for a hash, the later one is kept.
func AddTombstone(ctx context.Context, tx *store.Tx, hash []byte, until any) error {
	_, err := tx.Exec(ctx, upsertTombstone, hash, until)
	return err
}

// Holds reports whether one of the keys has a tombstone that applies to events at the given time
// (Unix seconds).
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

// CopyKey returns the key of a call that a resumed or forked session repeats.
func CopyKey(call string, part int, content string) TombstoneKey {
	return TombstoneKey{"copy", call, strconv.Itoa(part), content}
}

func PromptKey(session, prompt string) TombstoneKey { return TombstoneKey{"prompt", session, prompt} }

// SamePromptKey returns the key of a prompt for live events. A prompt sent during a turn has the
// same id as the turn's prompt, so the key includes the content.
func SamePromptKey(session, prompt, content string) TombstoneKey {
	return TombstoneKey{"same prompt", session, prompt, content}
}

func LineKey(line string) TombstoneKey       { return TombstoneKey{"line", line} }
func SessionKey(session string) TombstoneKey { return TombstoneKey{"session", session} }
func ProjectKey(project string) TombstoneKey { return TombstoneKey{"project", project} }

func SessionInProjectKey(session, project string) TombstoneKey {
	return TombstoneKey{"session in project", session, project}
}

// textKey returns the key of a row without an id: its session, type, text and approximate time.
// Steps are Width seconds long. The text of a compaction's summary is not included, because hook
// and transcript may report it in different words.
func textKey(session, obsType, content, role string, step int64) TombstoneKey {
	at := strconv.FormatInt(step, 10)
	if role == RoleSummary {
		return TombstoneKey{"summary", session, at}
	}
	return TombstoneKey{"text", session, obsType, content, at}
}

// Width returns by how many seconds the times of two deliveries of a row without an id may
// differ.
func Width(obsType, role string) int64 {
	if role == RoleSummary || obsType != TypePrompt && obsType != TypeMessage {
		return MarkTwin
	}
	return PromptTwin
}

// Around returns the possible tombstone keys of a row without an id.
func Around(session, obsType, content, role string, at int64) (keys []TombstoneKey) {
	w := Width(obsType, role)
	for step := at/w - 1; step <= at/w+1; step++ {
		keys = append(keys, textKey(session, obsType, content, role, step))
	}
	return keys
}

// AnyTime replaces the step in keys of deliveries whose time is unreliable.
const AnyTime = math.MinInt64

// dedupStep is the period in seconds after a read or search in which equal ones may have been
// dropped. Without the purged row, an import would otherwise store a dropped one.
const dedupStep = int64(DefaultDedupWindow / time.Second)

// IsRepeatable reports whether later rows that are equal to such a row are dropped for some
// time.
func IsRepeatable(obsType string, failed bool) bool {
	return !failed && (obsType == TypeRead || obsType == TypeSearch)
}

// EqualCallKey returns the key of a call that may be delivered again without an id.
func EqualCallKey(session string, l EqualityKey, step int64) TombstoneKey {
	return TombstoneKey{"like", session, l.kind, l.what, strconv.FormatInt(step, 10)}
}

func EqualCallStep(obsType string, failed bool) int64 {
	if IsRepeatable(obsType, failed) {
		return dedupStep
	}
	return MarkTwin
}

// WordsKey returns the key of a prompt or message by its words, for transcripts without the
// hooks' ids.
func WordsKey(session, obsType, words string, step int64) TombstoneKey {
	return TombstoneKey{"words", session, obsType, words, strconv.FormatInt(step, 10)}
}

// wordings returns the texts that such a transcript may contain for a stored text. A hook may
// report a message together with earlier text of the turn, so the text after each line break
// counts as well (see sameWords).
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

// Wording returns the part of a message that identifies it: at most its last MessageEnd
// characters.
func Wording(content string) string {
	if over := utf8.RuneCountInString(content) - MessageEnd; over > 0 {
		return content[len(oneline.Cut(content, over)):]
	}
	return content
}

// RowToDelete is a row to be deleted, with the data for its tombstones.
type RowToDelete struct {
	Id, At, SessionKey        int64
	Session, Project, ObsType string
	UnknownIDs                bool // from a hook whose ids the transcript does not have (see Match)
	Content, Role, Call       string
	PathKey, Command          string
	Failed                    bool
	Part                      int
	Prompt                    sql.NullInt64 // the prompt that this row belongs to
	PromptID, Line            string        // of that prompt
}

// Keys returns the keys for the row's tombstones.
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

// callKeys returns the keys of a call.
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

// EqualityKey identifies equal calls of a session without ids: the kind of action and its
// target. A write equals an edit of the same file, and a command equals its failure, because
// hooks and transcripts differ in these.
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

// MessageEnd is the number of characters at the end of a long message that identify it.
const MessageEnd = 600

// PromptTwin is the largest difference in seconds between a hook's and a transcript's time of
// the same prompt (observations §12).
const PromptTwin = 10

// CopyTwin is the largest difference in seconds between the time of a row and of its copy in a
// resumed or forked session (observations §12).
const CopyTwin = 60

// RoleSummary is the role of a message that summarizes what a compaction dropped.
const RoleSummary = "compact_summary"

// MarkTwin is the largest difference in seconds between a hook's and a transcript's time of the
// same compaction.
const MarkTwin = 60
