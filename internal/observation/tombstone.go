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

	"cairn/internal/project"
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
		return content[len(cutRunes(content, over)):]
	}
	return content
}

// leaveOut drops what of an event was purged, before anything of it is written;
// gone says that nothing is left to do. Only an imported event can belong to a
// purged session or project: what a hook tells has happened since.
func (w *writing) leaveOut(ctx context.Context, tx *store.Tx, rows []draft) (kept []draft, gone bool, err error) {
	if !w.graves.any() {
		return rows, false, nil
	}
	place := w.place
	if w.event.Imported {
		own, ids, err := w.likelyProject(ctx, tx)
		if err != nil {
			return nil, false, err
		}
		if gone, err := w.isWhollyGone(ctx, tx, ids); gone || err != nil {
			w.done.Purged += len(rows)
			return nil, true, err
		}
		place = place.Within(own)
	}
	for _, d := range rows {
		gone, err := w.graves.holds(ctx, tx, math.MinInt64, w.keys(d, place)...)
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

// isWhollyGone reports whether the event's session or one of the projects, given
// by their ids, was purged.
func (w *writing) isWhollyGone(ctx context.Context, tx *store.Tx, projects []string) (bool, error) {
	id := w.event.Session
	keys := []tombKey{sessionKey(id)}
	for _, p := range projects {
		keys = append(keys, projectKey(p), sessionInProjectKey(id, p))
	}
	gone, err := w.graves.holds(ctx, tx, w.at, keys...)
	if gone && err == nil && len(projects) > 0 && w.absent != nil {
		w.absent[id] = projects
	}
	return gone, err
}

// likelyProject is the project to which the event's row would go, with all ids
// under which it may have been purged, none for one that has no row. Outside any
// repository that is its session's, also of a session whose first events were
// purged.
func (w *writing) likelyProject(ctx context.Context, tx *store.Tx) (own project.Project, ids []string, err error) {
	if w.place.Identity == "" {
		s, ok, err := project.FindSession(ctx, tx, w.event.Session)
		if err != nil || ok {
			if err == nil {
				own, _, err = project.Find(ctx, tx, s.ProjectID)
			}
			return own, []string{s.ProjectID}, err
		}
		if ids := w.absent[w.event.Session]; ids != nil {
			own, _, err = project.Find(ctx, tx, ids[0])
			return own, ids, err
		}
	}
	return project.CurrentWithIDs(ctx, tx, w.place)
}

// keys are what a row that is told now, in place, may be buried under.
func (w *writing) keys(d draft, place project.Location) (keys []tombKey) {
	e := &w.event
	switch {
	case d.CallID != "":
		keys = append(keys, callKey(e.Session, d.CallID, d.Part))
		if e.Imported {
			keys = append(keys, copyKey(d.CallID, d.Part, d.Content))
			keys = append(keys, w.likeKeys(d, place)...)
		}
		return keys
	case e.Kind == Prompt && e.PromptID != "" && e.Imported:
		keys = append(keys, promptKey(e.Session, e.PromptID))
	case e.Kind == Prompt && e.PromptID != "":
		keys = append(keys, samePromptKey(e.Session, e.PromptID, d.Content))
	}
	if e.LineID != "" {
		keys = append(keys, lineKey(e.LineID))
	}
	if e.Imported {
		keys = append(keys, w.toldKeys(d, place)...)
	}
	return keys
}

// toldKeys are the keys of an imported row without ids by what it tells and when.
func (w *writing) toldKeys(d draft, place project.Location) []tombKey {
	e := &w.event
	switch {
	case isAction(d.Type):
		return w.likeKeys(d, place)
	case e.Match == MatchID || e.Role == roleSummary || e.Kind != Prompt && e.Kind != Message:
		return around(e.Session, d.Type, d.Content, e.Role, w.at)
	}
	words := wording(d.Content)
	if d.Type == typePrompt {
		words = d.Content
	}
	return w.steps(width(d.Type, e.Role), func(step int64) tombKey {
		return wordsKey(e.Session, d.Type, words, step)
	})
}

// likeKeys are the keys of a call by what it did.
func (w *writing) likeKeys(d draft, place project.Location) []tombKey {
	if w.event.Match == MatchID && !isRepeatable(d.Type, d.Failed) {
		return nil
	}
	path := ""
	if d.Path != "" {
		path = place.PathKey(d.Path)
	}
	like := d.likeness(path)
	return w.steps(stepOfLike(d.Type, d.Failed), func(step int64) tombKey {
		return likeKey(w.event.Session, like, step)
	})
}

// steps makes the keys for the times at which the event may have been dated.
func (w *writing) steps(width int64, key func(step int64) tombKey) (keys []tombKey) {
	if w.event.Match == MatchText {
		return []tombKey{key(anyTime)}
	}
	for step := w.at/width - 1; step <= w.at/width+1; step++ {
		keys = append(keys, key(step))
	}
	return keys
}
