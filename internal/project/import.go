package project

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// CodeOtherOrigin marks a project of an export that is another repository's here.
const CodeOtherOrigin = "project_differs"

// maxSecond is the last second that can be written with four digits of a year.
const maxSecond = 253402300799

// ValidTime reports whether a time of an export, in Unix seconds, can be one.
func ValidTime(at int64) bool { return 0 <= at && at <= maxSecond }

// Check says what is wrong with a project that was read from an export, for
// people; nil for a sound one.
func (e *Exported) Check() error {
	switch {
	case checkID(e.ID) != nil:
		return errors.New("its id cannot be a project's")
	case !isLine(e.Name, 4096) || len(e.Identity) > maxPath || len(e.Root) > maxPath || len(e.OriginURL) > maxPath:
		return errors.New("its name or place is too long")
	case len(e.Description) > 64<<10:
		return errors.New("its description is too long")
	case !ValidTime(e.CreatedAt) || e.CreatedNS < 0 || e.ChangedNS < 0:
		return errors.New("its time is out of range")
	case e.MergedInto == e.ID:
		return errors.New("it is merged into itself")
	}
	for _, key := range e.Keys {
		if key == "" || len(key) > maxPath+len(pathKind) || !utf8.ValidString(key) {
			return errors.New("one of its keys is invalid")
		}
	}
	for _, alias := range e.Aliases {
		if checkAlias(alias) != nil {
			return errors.New("one of its aliases cannot be one")
		}
	}
	return nil
}

// Check says what is wrong with a session that was read from an export, for
// people; nil for a sound one.
func (e *ExportedSession) Check() error {
	switch {
	case !isLine(e.ID, 4096) || e.ID == "":
		return errors.New("its id cannot be a session's")
	case !ValidTime(e.StartedAt) || !ValidTime(e.EndedAt) || !ValidTime(e.LastSeen):
		return errors.New("its times are out of range")
	case len(e.Harness) > 4096 || len(e.Model) > 4096 || len(e.Digest) > 1<<20 || len(e.Branches) > 10_000:
		return errors.New("it is too large")
	case len(e.Digest) > 0 && e.Digest[0] != '{':
		return errors.New("its digest is not a JSON object")
	}
	for _, b := range e.Branches {
		if b == "" || len(b) > 4096 {
			return errors.New("one of its branches cannot be one")
		}
	}
	return nil
}

func isLine(s string, most int) bool { return len(s) <= most && utf8.ValidString(s) }

// allKeys are the keys of a project of an export; those of older exports follow from
// its remote or its path.
func (e *Exported) allKeys() []string {
	switch remote := NormalizeRemote(e.OriginURL, ""); {
	case len(e.Keys) > 0 || e.MergedInto != "":
		return e.Keys
	case remote != "":
		return []string{remote}
	case e.Identity != "":
		return []string{repositoryKey(e.Identity)}
	case e.Root != "":
		return []string{pathKind + e.Root}
	}
	return nil
}

// Fits reports whether a project of an export may go together with the one that
// its id names here. Two with the keys of different remotes are different repositories,
// which is Conflict, CodeOtherOrigin; unless the export's has a project here already.
func Fits(ctx context.Context, tx *store.Tx, e Exported) error {
	keys := e.allKeys()
	if _, ok, err := ownerOf(ctx, tx, keys); ok || err != nil {
		return err
	}
	old, known, err := Find(ctx, tx, e.ID)
	if err != nil || !known || e.MergedInto != "" || !hasRemote(keys) {
		return err
	}
	have, err := tx.Texts(ctx, selectKeys, old.Key)
	if err != nil || !hasRemote(have) {
		return err
	}
	return fault.Newf(fault.Conflict, CodeOtherOrigin, "the project %s here is another repository (%s) than the one in the file (%s)",
		e.ID, old.OriginURL, e.OriginURL).WithHint("import it into a store of its own with --db")
}

// ownerOf returns the project that has the first of some keys that any project has.
func ownerOf(ctx context.Context, tx *store.Tx, keys []string) (q Project, ok bool, err error) {
	for _, key := range keys {
		if q, ok, err = owner(ctx, tx, key); ok || err != nil {
			return q, ok, err
		}
	}
	return q, false, nil
}

func hasRemote(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return strength(key) == remoteStrength })
}

// Imported is what became of a project of an export.
type Imported struct {
	Project Project // to which its rows go
	New     bool    // its row was made
	Left    int     // aliases that lead elsewhere here and stay so
}

// Import makes a project of an export, as it was in the other store, if no project has
// one of its keys or its id. The aliases that are free lead to it, and its id where
// another id has its keys. A project that is here already stays as it is.
// Repeating it changes nothing. Errors are those of Fits and of the store.
func Import(ctx context.Context, tx *store.Tx, e Exported) (r Imported, err error) {
	if err := Fits(ctx, tx, e); err != nil {
		return r, err
	}
	aliases := e.Aliases
	old, known, err := ownerOf(ctx, tx, e.allKeys())
	if known && old.ID != e.ID {
		aliases = append(aliases, e.ID)
	}
	if err == nil && !known {
		old, known, err = Find(ctx, tx, e.ID)
	}
	if err == nil && !known {
		r.New = true
		old, err = e.insert(ctx, tx)
	}
	if err != nil {
		return r, err
	}
	if e.MergedInto != "" && r.New {
		aliases = append(aliases, e.ID)
		if old, err = mustFind(ctx, tx, e.MergedInto); err != nil {
			return r, err
		}
	}
	r.Project = old
	changed := 0
	for _, alias := range aliases {
		n, left, err := addFree(ctx, tx, alias, e.ID, old)
		if err != nil {
			return r, err
		}
		changed, r.Left = changed+n, r.Left+left
	}
	if changed > 0 {
		err = e.log(ctx, tx, old)
	}
	return r, err
}

// log appends that aliases now lead to q, and what has been merged into it.
func (e *Exported) log(ctx context.Context, tx *store.Tx, q Project) error {
	at := e.ChangedNS
	if e.MergedInto != "" {
		var key int64
		if err := tx.Get(ctx, []any{&key}, selectKeyOfID, e.ID); err != nil {
			return err
		}
		if _, err := logProjectAt(ctx, tx, key, at); err != nil {
			return err
		}
		// What q was told of last may be later.
		if err := ignoreNone(tx.Get(ctx, []any{&at}, selectChanged, q.ID, at)); err != nil {
			return err
		}
	}
	_, err := logProjectAt(ctx, tx, q.Key, at)
	return err
}

// addFree makes alias lead to a project, unless it leads somewhere already or is
// the id of another project than own.
func addFree(ctx context.Context, tx *store.Tx, alias, own string, q Project) (added, left int, err error) {
	other, taken, err := Find(ctx, tx, alias)
	switch {
	case err != nil:
		return 0, 0, err
	case taken && other.Key == q.Key:
		return 0, 0, nil
	case taken && alias != own:
		return 0, 1, nil
	}
	_, err = tx.Exec(ctx, insertAlias, alias, q.ID)
	return 1, 0, err
}

// insert makes the row of a project of an export.
func (e *Exported) insert(ctx context.Context, tx *store.Tx) (Project, error) {
	q := Project{ID: e.ID, Name: e.Name, Identity: e.Identity, Root: e.Root, OriginURL: e.OriginURL}
	if e.Identity != "" {
		var other int64
		err := tx.Get(ctx, []any{&other}, selectHasIdentity, e.Identity)
		if err == nil {
			q.Identity, q.Root = "", "" // the repository has a project here
		} else if !errors.Is(err, sql.ErrNoRows) {
			return q, err
		}
	}
	res, err := tx.Exec(ctx, insertExportedProject, q.ID, q.Name, null(q.Identity), null(q.Root), null(q.OriginURL), e.CreatedAt,
		nullNumber(e.CreatedNS), null(e.Description))
	if err != nil {
		return q, err
	}
	if q.Key, err = res.LastInsertId(); err != nil {
		return q, err
	}
	if err := addKeys(ctx, tx, q.Key, e.allKeys()); err != nil {
		return q, err
	}
	return logProjectAt(ctx, tx, q.Key, e.ChangedNS)
}

const (
	insertExportedProject = `INSERT INTO projects (id, name, identity, root, origin_url, created_at, created_ns, description)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	selectHasIdentity = `SELECT key FROM projects WHERE identity = ?`
	selectChanged     = `SELECT max(c.at, ?2) FROM changes c WHERE c.stream = (SELECT id FROM symbols WHERE text = 'project/' || ?1)
AND c.doc IS NOT NULL ORDER BY c.seq DESC LIMIT 1`
	selectKeyOfID = `SELECT key FROM projects WHERE id = ?`
)

// ImportSession makes a session of an export, or fills what is unknown of the
// one that is here; added reports which. Its digest and branches are the affair of
// observations. Repeating it changes nothing. An unknown project is NotFound.
func ImportSession(ctx context.Context, tx *store.Tx, e ExportedSession) (s Session, added bool, err error) {
	old, known, err := FindSession(ctx, tx, e.ID)
	if err != nil {
		return s, false, err
	}
	if known {
		s = old
		if s.Harness == "" {
			s.Harness = e.Harness
		}
		if s.Model == "" {
			s.Model = e.Model
		}
		s.StartedAt, s.LastSeen, s.EndedAt = min(s.StartedAt, e.StartedAt), max(s.LastSeen, e.LastSeen), max(s.EndedAt, e.EndedAt)
		return s, false, s.save(ctx, tx, old)
	}
	q, err := mustFind(ctx, tx, e.Project)
	if err != nil {
		return s, false, err
	}
	s, err = insertNew(ctx, tx, Session{
		ID: e.ID, ProjectID: q.ID, ProjectKey: q.Key, Harness: e.Harness, Model: e.Model,
		StartedAt: e.StartedAt, EndedAt: e.EndedAt, LastSeen: e.LastSeen,
	})
	return s, true, err
}
