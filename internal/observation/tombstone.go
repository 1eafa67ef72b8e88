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

// graves knows what must not come back (observations §11.3): a purged row under
// every key by which the same event may be told again, and whole sessions and
// projects. The keys are salted hashes. Without a purge there is no salt; beside
// the store's own there are those of the stores that it has imported exports of.
type graves struct{ salts [][]byte } // its own first

const (
	selectTomb = `SELECT until FROM tombstones WHERE hash = ?`

	upsertTomb = `INSERT INTO tombstones (hash, until) VALUES (?, ?)
ON CONFLICT (hash) DO UPDATE SET until = CASE WHEN until IS NULL OR excluded.until IS NULL THEN NULL
    ELSE max(until, excluded.until) END`
)

// ownSalt is the name of the store's own salt; another store's has part of itself
// behind it.
const ownSalt = "tombstone_salt"

// openGraves reads the salts: all that a store costs in which nothing was purged.
func openGraves(ctx context.Context, tx *store.Tx) (g graves, err error) {
	notes, err := tx.MetaUnder(ctx, ownSalt)
	for _, note := range notes {
		var salt []byte
		if err == nil {
			salt, err = hex.DecodeString(note.Value)
		}
		g.salts = append(g.salts, salt)
	}
	return g, err
}

// makeGraves is openGraves for a purge: it makes the salt if there is none.
func makeGraves(ctx context.Context, tx *store.Tx) (graves, error) {
	g, err := openGraves(ctx, tx)
	if err != nil || g.any() {
		return g, err
	}
	salt := make([]byte, sha256.Size)
	rand.Read(salt)
	err = g.add(ctx, tx, salt)
	return g, err
}

// add keeps one more salt, as the store's own if it has none.
func (g *graves) add(ctx context.Context, tx *store.Tx, salt []byte) error {
	if slices.ContainsFunc(g.salts, func(s []byte) bool { return bytes.Equal(s, salt) }) {
		return nil
	}
	name := ownSalt
	if g.any() {
		name += "/" + hex.EncodeToString(salt[:8])
	}
	g.salts = append(g.salts, salt)
	return tx.SetMeta(ctx, name, hex.EncodeToString(salt))
}

// any reports whether anything was ever buried.
func (g graves) any() bool { return len(g.salts) > 0 }

// texts are the salts in hex.
func (g graves) texts() (out []string) {
	for _, s := range g.salts {
		out = append(out, hex.EncodeToString(s))
	}
	return out
}

// tombKey is what a purged thing is known by: its sort and its parts, told apart
// by their lengths.
type tombKey []string

func (k tombKey) hash(salt []byte) []byte {
	h := sha256.New()
	h.Write(salt)
	for _, part := range k {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return h.Sum(nil)[:16]
}

// bury keeps a key from coming back: permanently, or with its events up to a time
// (Unix seconds).
func (g graves) bury(ctx context.Context, tx *store.Tx, until any, keys ...tombKey) error {
	for _, k := range keys {
		if err := buryHash(ctx, tx, k.hash(g.salts[0]), until); err != nil {
			return err
		}
	}
	return nil
}

// buryHash stores a tombstone: the hash of a key, and the time up to which it holds (Unix
// seconds), nil for permanently.
func buryHash(ctx context.Context, tx *store.Tx, hash []byte, until any) error {
	_, err := tx.Exec(ctx, upsertTomb, hash, until)
	return err
}

// holds reports whether one of the keys is buried for what happened at a time.
func (g graves) holds(ctx context.Context, tx *store.Tx, at int64, keys ...tombKey) (bool, error) {
	for _, k := range keys {
		for _, salt := range g.salts {
			var until sql.NullInt64
			err := tx.Get(ctx, []any{&until}, selectTomb, k.hash(salt))
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

func callKey(session, call string, part int) tombKey {
	return tombKey{"call", session, call, strconv.Itoa(part)}
}

// copyKey is the key of a call that a resumed or forked session tells again.
func copyKey(call string, part int, content string) tombKey {
	return tombKey{"copy", call, strconv.Itoa(part), content}
}

func promptKey(session, prompt string) tombKey { return tombKey{"prompt", session, prompt} }

// samePromptKey is the key of a prompt for hooks: what is sent while a turn goes on
// shares the id of the turn's prompt and is another one.
func samePromptKey(session, prompt, content string) tombKey {
	return tombKey{"same prompt", session, prompt, content}
}

func lineKey(line string) tombKey       { return tombKey{"line", line} }
func sessionKey(session string) tombKey { return tombKey{"session", session} }
func projectKey(project string) tombKey { return tombKey{"project", project} }

func sessionInProjectKey(session, project string) tombKey {
	return tombKey{"session in project", session, project}
}

// textKey is the key of a row that has no id of its own: what it says, where and
// about when. Steps are width seconds long. Hook and transcript may tell a
// compaction's summary in different words.
func textKey(session, obsType, content, role string, step int64) tombKey {
	at := strconv.FormatInt(step, 10)
	if role == roleSummary {
		return tombKey{"summary", session, at}
	}
	return tombKey{"text", session, obsType, content, at}
}

// width is how far apart two tellings of a row without an id may be dated.
func width(obsType, role string) int64 {
	if role == roleSummary || obsType != typePrompt && obsType != typeMessage {
		return markTwin
	}
	return promptTwin
}

// around are the keys under which a row without an id may have been buried.
func around(session, obsType, content, role string, at int64) (keys []tombKey) {
	w := width(obsType, role)
	for step := at/w - 1; step <= at/w+1; step++ {
		keys = append(keys, textKey(session, obsType, content, role, step))
	}
	return keys
}

// anyTime stands for the step of a row that is told again at a time that says
// nothing.
const anyTime = math.MinInt64

// dedupStep is how many seconds after a read or search an equal one may have been
// dropped for it; with the row gone a transcript would bring that one.
const dedupStep = int64(DefaultDedupWindow / time.Second)

// isRepeatable reports whether equal rows near one of this kind are dropped.
func isRepeatable(obsType string, failed bool) bool {
	return !failed && (obsType == typeRead || obsType == typeSearch)
}

// likeKey is the key of a call of which no id is told again.
func likeKey(session string, l likeness, step int64) tombKey {
	return tombKey{"like", session, l.kind, l.what, strconv.FormatInt(step, 10)}
}

func stepOfLike(obsType string, failed bool) int64 {
	if isRepeatable(obsType, failed) {
		return dedupStep
	}
	return markTwin
}

// wordsKey is the key of words that a transcript without hooks' ids may tell.
func wordsKey(session, obsType, words string, step int64) tombKey {
	return tombKey{"words", session, obsType, words, strconv.FormatInt(step, 10)}
}

// wordings are the ends of a stored text that such a transcript may tell of it:
// hooks may tell of a message what came before it in the turn (see sameWords).
func wordings(obsType, content string) []string {
	if obsType != typeMessage {
		return []string{content}
	}
	texts := []string{wording(content)}
	for i, r := range content {
		if r != '\n' {
			continue
		}
		if text := wording(content[i+1:]); text != texts[len(texts)-1] {
			texts = append(texts, text)
		}
	}
	return texts
}

// wording is what tells a message from others.
func wording(content string) string {
	if over := utf8.RuneCountInString(content) - messageEnd; over > 0 {
		return content[len(oneline.Cut(content, over)):]
	}
	return content
}

// doomed is a row that is to go, with what its tombstones need.
type doomed struct {
	id, at, sessionKey        int64
	session, project, obsType string
	unnamed                   bool // a hook told it whose ids the session's transcript does not know (see Match)
	content, role, call       string
	pathKey, command          string
	failed                    bool
	part                      int
	prompt                    sql.NullInt64 // the prompt it stands for
	promptID, line            string        // that prompt's
}

// keys are what the row is to be buried under.
func (d *doomed) keys() (keys []tombKey) {
	if isAction(d.obsType) {
		return d.callKeys()
	}
	if d.promptID != "" && d.obsType == typePrompt {
		keys = append(keys, promptKey(d.session, d.promptID), samePromptKey(d.session, d.promptID, d.content))
	}
	if d.line != "" {
		keys = append(keys, lineKey(d.line))
	}
	step := d.at / width(d.obsType, d.role)
	keys = append(keys, textKey(d.session, d.obsType, d.content, d.role, step))
	if d.unnamed && d.line == "" {
		for _, words := range wordings(d.obsType, d.content) {
			keys = append(keys, wordsKey(d.session, d.obsType, words, step), wordsKey(d.session, d.obsType, words, anyTime))
		}
	}
	return keys
}

// callKeys are the keys of a call.
func (d *doomed) callKeys() (keys []tombKey) {
	like := likenessOf(d.obsType, d.pathKey, d.command, d.content)
	if d.call != "" {
		keys = append(keys, callKey(d.session, d.call, d.part), copyKey(d.call, d.part, d.content))
	}
	if d.unnamed || isRepeatable(d.obsType, d.failed) {
		keys = append(keys, likeKey(d.session, like, d.at/stepOfLike(d.obsType, d.failed)))
	}
	if d.unnamed {
		keys = append(keys, likeKey(d.session, like, anyTime))
	}
	return keys
}

// likeness is what makes two calls of a session the same where no id tells: what
// kind of thing was done and to what. A write is like an edit of the file, and a
// command like its failure, for hooks and transcripts differ in that.
type likeness struct{ kind, what string }

func likenessOf(obsType, pathKey, command, content string) likeness {
	switch obsType {
	case typeWrite, typeEdit:
		return likeness{typeEdit, pathKey}
	case typeRead:
		return likeness{typeRead, pathKey}
	case typeCommand, typeCommandError, typeGitCommit, typeGitPush, typeGitHub:
		return likeness{typeCommand, command}
	}
	return likeness{obsType, content}
}

// messageEnd is how many characters of a long message tell it from others.
const messageEnd = 600

// promptTwin is how far apart, in seconds, a hook and a transcript may date the
// same prompt (observations §12).
const promptTwin = 10

// copyTwin is how far apart, in seconds, a resumed or forked session may date
// what it copied (observations §12).
const copyTwin = 60

// roleSummary is the role of a message that sums up what a compaction dropped.
const roleSummary = "compact_summary"

// markTwin is how far apart, in seconds, a hook and a transcript may date the
// same compaction.
const markTwin = 60
