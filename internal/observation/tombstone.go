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

	"cairn/internal/project"
	"cairn/internal/store"
)

// graves knows what must not come back (observations §11.3): a purged row under
// every key by which the same event may be told again, and whole sessions and
// projects. The keys are salted hashes. Without a purge there is no salt; beside
// the store's own there are those of the stores that it has imported exports of.
type graves struct{ salts [][]byte } // its own first

const (
	// '0' is the character after '/'.
	selectSalts = `SELECT value FROM store_meta WHERE name >= 'tombstone_salt' AND name < 'tombstone_salt0' ORDER BY name`
	insertSalt  = `INSERT OR IGNORE INTO store_meta (name, value) VALUES (?, ?)`
	selectTomb  = `SELECT until FROM tombstones WHERE hash = ?`

	upsertTomb = `INSERT INTO tombstones (hash, until) VALUES (?, ?)
ON CONFLICT (hash) DO UPDATE SET until = CASE WHEN until IS NULL OR excluded.until IS NULL THEN NULL
    ELSE max(until, excluded.until) END`
)

// ownSalt is the name of the store's own salt; another store's has part of itself
// behind it.
const ownSalt = "tombstone_salt"

// openGraves reads the salts: all that a store costs in which nothing was purged.
func openGraves(ctx context.Context, tx *store.Tx) (g graves, err error) {
	err = tx.Each(ctx, func(r *sql.Rows) error {
		var text string
		if err := r.Scan(&text); err != nil {
			return err
		}
		salt, err := hex.DecodeString(text)
		g.salts = append(g.salts, salt)
		return err
	}, selectSalts)
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
	return g, g.add(ctx, tx, salt)
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
	_, err := tx.Exec(ctx, insertSalt, name, hex.EncodeToString(salt))
	return err
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

// bury keeps a key from coming back: for good, or with its events up to a time
// (Unix seconds).
func (g graves) bury(ctx context.Context, tx *store.Tx, until any, keys ...tombKey) error {
	for _, k := range keys {
		if _, err := tx.Exec(ctx, upsertTomb, k.hash(g.salts[0]), until); err != nil {
			return err
		}
	}
	return nil
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
func lineKey(line string) tombKey              { return tombKey{"line", line} }
func sessionKey(session string) tombKey        { return tombKey{"session", session} }
func projectKey(project string) tombKey        { return tombKey{"project", project} }

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

// leaveOut drops what of an event was purged, before
// anything of it is written; gone says that nothing is left to do. Only an
// imported event can belong to a purged session or project: what a hook tells has
// happened since.
func (w *writing) leaveOut(ctx context.Context, tx *store.Tx, rows []draft) (kept []draft, gone bool, err error) {
	if !w.graves.any() {
		return rows, false, nil
	}
	if w.event.Imported {
		if gone, err := w.isWhollyGone(ctx, tx); gone || err != nil {
			w.done.Purged += len(rows)
			return nil, true, err
		}
	}
	for _, d := range rows {
		gone, err := w.graves.holds(ctx, tx, math.MinInt64, w.keys(d)...)
		switch {
		case err != nil:
			return nil, false, err
		case gone:
			w.done.Purged++
		default:
			kept = append(kept, d)
		}
	}
	return kept, len(rows) > 0 && len(kept) == 0, nil
}

// isWhollyGone reports whether the event's session or project was purged.
func (w *writing) isWhollyGone(ctx context.Context, tx *store.Tx) (bool, error) {
	id := w.event.Session
	own, err := w.likelyProject(ctx, tx)
	if err != nil {
		return false, err
	}
	gone, err := w.graves.holds(ctx, tx, w.at, sessionKey(id), projectKey(own), sessionInProjectKey(id, own))
	if gone && err == nil && own != "" && w.absent != nil {
		w.absent[id] = own
	}
	return gone, err
}

// likelyProject is the id of the project to which the event's row would go, ""
// for one that has no row. Outside any repository that is its session's, also of
// a session whose first events were purged.
func (w *writing) likelyProject(ctx context.Context, tx *store.Tx) (string, error) {
	if w.place.Identity == "" {
		s, ok, err := project.FindSession(ctx, tx, w.event.Session)
		if err != nil || ok {
			return s.ProjectID, err
		}
		if own := w.absent[w.event.Session]; own != "" {
			return own, nil
		}
	}
	p, _, err := project.Current(ctx, tx, w.place)
	return p.ID, err
}

// keys are what a row that is told now may be buried under.
func (w *writing) keys(d draft) (keys []tombKey) {
	e := &w.event
	if d.CallID != "" {
		keys = append(keys, callKey(e.Session, d.CallID, d.Part))
		if e.Imported {
			keys = append(keys, copyKey(d.CallID, d.Part, d.Content))
		}
		if e.Match != MatchID { // the hook knew no id
			keys = append(keys, around(e.Session, d.Type, d.Content, e.Role, w.at)...)
		}
		return keys
	}
	if e.Kind == Prompt && e.PromptID != "" {
		keys = append(keys, promptKey(e.Session, e.PromptID))
	}
	if e.LineID != "" {
		keys = append(keys, lineKey(e.LineID))
	}
	if e.Imported {
		keys = append(keys, around(e.Session, d.Type, d.Content, e.Role, w.at)...)
	}
	return keys
}
