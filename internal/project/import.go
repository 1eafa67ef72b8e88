package project

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"unicode/utf8"

	"cairn/internal/fault"
	"cairn/internal/project/gitdir"
	"cairn/internal/store"
)

// CodeOtherOrigin marks a project of an export whose id belongs to another repository
// here.
const CodeOtherOrigin = "project_differs"

// maxSecond is the last second that can be written with four digits of a year.
const maxSecond = 253402300799

// ValidTime reports whether a time of an export, in Unix seconds, is in range.
func ValidTime(at int64) bool { return 0 <= at && at <= maxSecond }

// Check returns a human-readable error if a project from an export is invalid, else nil.
func (e *Exported) Check() error {
	switch {
	case checkID(e.ID) != nil:
		return errors.New("its id is not a valid project id")
	case !isLine(e.Name, 4096) || len(e.Identity) > gitdir.MaxPath || len(e.Root) > gitdir.MaxPath || len(e.OriginURL) > gitdir.MaxPath:
		return errors.New("its name or place is too long")
	case len(e.Description) > 64<<10:
		return errors.New("its description is too long")
	case !ValidTime(e.CreatedAt) || e.CreatedNS < 0 || e.ChangedNS < 0:
		return errors.New("its time is out of range")
	case e.MergedInto == e.ID:
		return errors.New("it is merged into itself")
	}
	for _, key := range e.Keys {
		if key == "" || len(key) > gitdir.MaxPath+len(pathKind) || !utf8.ValidString(key) {
			return errors.New("one of its keys is invalid")
		}
	}
	for _, alias := range e.Aliases {
		if checkAlias(alias) != nil {
			return errors.New("one of its aliases is invalid")
		}
	}
	return nil
}

// Check returns a human-readable error if a session from an export is invalid, else nil.
func (e *ExportedSession) Check() error {
	switch {
	case !isLine(e.ID, 4096) || e.ID == "":
		return errors.New("its id is not a valid session id")
	case !ValidTime(e.StartedAt) || !ValidTime(e.EndedAt) || !ValidTime(e.LastSeen):
		return errors.New("its times are out of range")
	case len(e.Harness) > 4096 || len(e.Model) > 4096 || len(e.Digest) > 1<<20 || len(e.Branches) > 10_000:
		return errors.New("it is too large")
	case len(e.Digest) > 0 && e.Digest[0] != '{':
		return errors.New("its digest is not a JSON object")
	}
	for _, b := range e.Branches {
		if b == "" || len(b) > 4096 {
			return errors.New("one of its branches is invalid")
		}
	}
	return nil
}

func isLine(s string, most int) bool { return len(s) <= most && utf8.ValidString(s) }

// allKeys returns the keys of a project of an export; for older exports they are derived
// from its remote or its path.
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

// Fits returns an error if a project of an export conflicts with the project of the same
// id here. Projects with keys of different remotes are different repositories (Conflict,
// CodeOtherOrigin), unless the exported project already has a project here.
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
		e.ID, old.OriginURL, e.OriginURL).WithHint("import it into a separate store with --db")
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

// Imported is the result of importing a project.
type Imported struct {
	Project Project // the project that gets its rows
	New     bool    // the project was created
	Left    int     // number of aliases that mean another project here and stay so
}

// Import creates a project of an export, unless a project here has its id or one of its
// keys. Free aliases are added, and also its id if a project with another id has its
// keys. An existing project stays unchanged. It is idempotent. Errors are those of Fits
// and of the store.
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

// log appends the changes for the aliases of q and for the projects merged into it.
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
		// The last logged change of q may be later.
		if err := ignoreNone(tx.Get(ctx, []any{&at}, selectChanged, q.ID, at)); err != nil {
			return err
		}
	}
	_, err := logProjectAt(ctx, tx, q.Key, at)
	return err
}

// addFree adds an alias to a project, unless the alias exists or is the id of another
// project than own.
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

// insert inserts the row of a project of an export.
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

// ImportSession creates a session of an export, or fills unknown fields of the existing
// one; added reports whether it was created. Package observation imports the digest and
// the branches. It is idempotent. An unknown project is NotFound.
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
