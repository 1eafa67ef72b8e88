package project

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project/gitdir"
	"cairn/internal/regular"
	"cairn/internal/store"
)

// The kinds of keys, by prefix. A key without one of these prefixes is the normalised URL
// of a remote: host/owner/repository.
const (
	pathKind  = "path:"  // a folder, or a remote on this machine
	rootKind  = "root:"  // the root commit of a history without a remote
	splitKind = "split:" // a checkout that a person split off into its own project
	nameKind  = "name:"  // a project without a place
)

const uidDigits = 20

// NormalizeRemote returns the key of a remote: host/path without scheme, user, password,
// port, `.git` and trailing slashes. The host is in lower case, the case of the path
// stays. An IPv6 host is in brackets; %, ? and # of the path are escaped as in a URL. So
// "https://" and the key is an address with the same key.
//
// For a repository on this machine the key is "path:" and the absolute path; a relative
// one counts from dir. It is "" for an address without a repository. Keys never contain
// control characters or invalid bytes, not even escaped.
func NormalizeRemote(address, dir string) string {
	address = strings.TrimSpace(address)
	if len(address) > maxOrigin || !isPlain(address) {
		return ""
	}
	host, path, local := splitRemote(address)
	switch {
	case path == "" || !isPlain(path):
		return ""
	case local:
		return localKey(path, dir)
	}
	host = strings.ToLower(strings.TrimRight(host, "."))
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if !isHost(host) {
		return ""
	}
	if path = remotePath(path); path == "" {
		return ""
	}
	if strings.ContainsAny(path, "%?#") {
		path = strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(path)
	}
	return host + "/" + path
}

// isPlain reports whether a text is UTF-8 without control characters.
func isPlain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// isHost reports whether a URL can have a host, which is in brackets if it has colons.
func isHost(host string) bool {
	if host == "" || strings.ContainsAny(host, "/@%?#") || strings.ContainsFunc(host, unicode.IsSpace) {
		return false
	}
	u, err := url.Parse("https://" + host + "/")
	return err == nil && u.Host == host && u.Hostname() == strings.Trim(host, "[]")
}

// remotePath returns a path on another machine without empty elements and `.git`; "" if
// nothing is left, or if it leads upwards.
func remotePath(path string) string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		switch part = strings.TrimSpace(part); part {
		case "", ".":
		case "..":
			return ""
		default:
			parts = append(parts, part)
		}
	}
	for n := len(parts); n > 0 && strings.HasSuffix(parts[n-1], ".git"); n = len(parts) {
		switch part := strings.TrimSpace(strings.TrimSuffix(parts[n-1], ".git")); part {
		case "", ".":
			parts = parts[:n-1]
		case "..":
			return ""
		default:
			parts[n-1] = part
		}
	}
	return strings.Join(parts, "/")
}

// splitRemote divides an address into host and path; local reports a path on this
// machine. path is "" for an address that cannot be parsed.
func splitRemote(address string) (host, path string, local bool) {
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		switch {
		case err != nil:
			return "", "", false
		case strings.EqualFold(u.Scheme, "file"):
			return "", u.Path, true
		}
		return u.Hostname(), u.Path, false
	}
	short := withoutUser(address)
	var ok bool
	if rest, bracketed := strings.CutPrefix(short, "["); bracketed {
		host, path, ok = strings.Cut(rest, "]:")
		if name, _, found := strings.Cut(host, ":"); found && strings.Count(host, ":") == 1 {
			host = name // the rest is a port
		}
	} else {
		host, path, ok = strings.Cut(short, ":")
	}
	if !ok || len(host) < 2 || strings.ContainsAny(host, `/\`) { // one letter is a drive
		return "", address, true
	}
	return host, path, false
}

// withoutUser returns an address of the form user@host:path without the user. Git has no
// password there, but some people add one.
func withoutUser(address string) string {
	if user, rest, found := strings.Cut(address, "@"); found && !strings.ContainsAny(user, "/:") {
		return rest
	}
	if user, rest, found := strings.Cut(address, "@"); found && !strings.ContainsAny(user, `/\`) && strings.Contains(rest, ":") {
		return rest
	}
	return address
}

// localKey returns the key of a repository at a path.
func localKey(path, dir string) string {
	path = filepath.FromSlash(path)
	if !IsAbsolute(path) {
		if dir == "" {
			return ""
		}
		path = filepath.Join(dir, path)
	}
	if path = gitdir.Canonical(filepath.Clean(path)); isTop(path) {
		return ""
	}
	return repositoryKey(path)
}

// repositoryKey returns the key of a repository at a canonical path: its git directory,
// its main worktree and a bare repository's short name have the same key.
func repositoryKey(path string) string {
	if filepath.Base(path) == ".git" {
		path = filepath.Dir(path)
	}
	return pathKind + strings.TrimSuffix(path, ".git")
}

// key returns the place's own key: the remote's, else the path's.
func (p Location) key() string {
	switch {
	case p.Remote != "":
		return p.Remote
	case p.Identity != "":
		return repositoryKey(p.Identity)
	}
	return p.folderKey()
}

// folderKey returns the key of a place outside a repository.
func (p Location) folderKey() string {
	subject := p.subject
	if subject == p.Cwd {
		subject = p.real
	}
	if len(subject) > gitdir.MaxPath {
		subject = subject[:gitdir.MaxPath]
	}
	return pathKind + subject
}

// uidOf returns the uid of a project with a key. The same path on two devices is two
// projects, so the device counts for keys that are paths.
func uidOf(key, device string) string {
	if strings.HasPrefix(key, pathKind) {
		key = device + "\n" + key
	}
	sum := sha1.Sum([]byte(key))
	return hex.EncodeToString(sum[:])[:uidDigits]
}

// uidHere returns the uid of a project here with a key. A project that a former
// incarnation of this device created keeps its uid; devices has the present one first.
func uidHere(key, uid string, devices []string) string {
	for _, device := range devices {
		if uidOf(key, device) == uid {
			return uid
		}
	}
	return uidOf(key, devices[0])
}

// strength orders the kinds of keys: a project has the uid of its strongest.
func strength(key string) int {
	switch {
	case strings.HasPrefix(key, nameKind):
		return 0
	case strings.HasPrefix(key, pathKind):
		return 1
	case strings.HasPrefix(key, rootKind):
		return rootStrength
	case strings.HasPrefix(key, splitKind):
		return 3
	}
	return remoteStrength
}

const (
	rootStrength   = 2
	remoteStrength = 4
)

const (
	selectKeyOwner = `SELECT ` + projectColumns + ` FROM project_keys k JOIN projects r ON r.key = k.project_key WHERE k.text = ?`
	selectKeys     = `SELECT text FROM project_keys WHERE project_key = ? ORDER BY added_at, text`
	insertKey      = `INSERT INTO project_keys (text, project_key, added_at) VALUES (?, ?, ?)`
	moveKeys       = `UPDATE project_keys SET project_key = ? WHERE project_key = ?`
	moveKey        = `UPDATE project_keys SET project_key = ? WHERE text = ?`
	updateUID      = `UPDATE projects SET uid = ? WHERE key = ?`
)

// owner returns the project that has a key; ok is false if no project has it.
func owner(ctx context.Context, tx *store.Tx, key string) (q Project, ok bool, err error) {
	err = tx.Get(ctx, scanProject(&q), selectKeyOwner, key)
	return q, err == nil, ignoreNone(err)
}

// addKey gives a project one more key, which no project may have, and computes its uid.
func addKey(ctx context.Context, tx *store.Tx, project int64, key string) error {
	return addKeys(ctx, tx, project, []string{key})
}

// setUID gives a project the uid of its strongest key, of equal ones the first. It keeps
// one that it has by a key of the same strength.
func setUID(ctx context.Context, tx *store.Tx, project int64) error {
	var q Project
	if err := tx.Get(ctx, scanProject(&q), selectProject, project); err != nil {
		return err
	}
	devices, err := tx.Devices(ctx)
	if err != nil {
		return err
	}
	keys, err := tx.Texts(ctx, selectKeys, project)
	if err != nil {
		return err
	}
	best := nameKind + q.ID
	for _, key := range keys {
		stronger, equal := strength(key) > strength(best), strength(key) == strength(best)
		if stronger || equal && uidHere(key, q.UID, devices) == q.UID {
			best = key
		}
	}
	if uid := uidHere(best, q.UID, devices); uid != q.UID {
		_, err = tx.Exec(ctx, updateUID, uid, project)
	}
	return err
}

// FindKey returns the project that has a key or a uid: the normalised URL of a remote,
// or one that can be normalised to it. ok is false if no project has it.
func FindKey(ctx context.Context, tx *store.Tx, text string) (q Project, ok bool, err error) {
	if len(text) == uidDigits {
		err = tx.Get(ctx, scanProject(&q), selectByUID, strings.ToLower(text))
		if err == nil || ignoreNone(err) != nil {
			return q, err == nil, err
		}
	}
	for _, key := range [...]string{text, NormalizeRemote(text, "")} {
		if key == "" {
			continue
		}
		if q, ok, err = owner(ctx, tx, key); ok || err != nil {
			return q, ok, err
		}
	}
	return q, false, nil
}

const selectByUID = `SELECT ` + projectColumns + ` FROM projects r WHERE r.uid = ?
AND NOT EXISTS (SELECT 1 FROM project_aliases a WHERE a.alias = r.id)`

// Checkout is one git directory of a project, with all its worktrees.
type Checkout struct {
	Identity  string `json:"git_directory"`       // the canonical common git directory
	Root      string `json:"root"`                // of the main worktree
	Remote    string `json:"remote"`              // the key of its remote, "" without one
	Pinned    bool   `json:"pinned"`              // assigned by `project link` or `project split`
	Undecided string `json:"undecided,omitempty"` // the key of its remote if that belongs to another project

	project int64
	birth   string
}

const (
	checkoutColumns = `c.identity, ifnull(c.root, ''), c.remote, c.pinned, c.undecided, c.project_key, c.birth`

	selectCheckout = `SELECT ` + projectColumns + `, ` + checkoutColumns + ` FROM project_checkouts c
JOIN projects r ON r.key = c.project_key WHERE c.identity = ?`

	// Whole tables, but only when a checkout is seen for the first time.
	selectCheckoutsBorn = `SELECT ` + projectColumns + `, ` + checkoutColumns + ` FROM project_checkouts c
JOIN projects r ON r.key = c.project_key WHERE c.birth = ? ORDER BY c.identity`
	selectCheckoutsOf = `SELECT ` + projectColumns + `, ` + checkoutColumns + ` FROM project_checkouts c
JOIN projects r ON r.key = c.project_key WHERE c.project_key = ? ORDER BY c.identity`

	selectByCheckoutPath = `SELECT ` + projectColumns + ` FROM project_checkouts c
JOIN projects r ON r.key = c.project_key WHERE c.identity IN (?1, ?2) OR c.root = ?1 ORDER BY c.identity LIMIT 1`

	putCheckout = `INSERT INTO project_checkouts (identity, project_key, root, remote, birth, pinned, undecided)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (identity) DO UPDATE SET
project_key = ?2, root = ?3, remote = ?4, birth = ?5, pinned = ?6, undecided = ?7`
	deleteCheckout = `DELETE FROM project_checkouts WHERE identity = ?`
	moveCheckouts  = `UPDATE project_checkouts SET project_key = ? WHERE project_key = ?`
)

func (c *Checkout) scan() []any {
	return []any{&c.Identity, &c.Root, &c.Remote, &c.Pinned, &c.Undecided, &c.project, &c.birth}
}

func (c *Checkout) put(ctx context.Context, tx *store.Tx) error {
	_, err := tx.Exec(ctx, putCheckout, c.Identity, c.project, null(c.Root), c.Remote, c.birth, c.Pinned, c.Undecided)
	return err
}

// checkoutAt returns the checkout with a git directory and its project; ok is false if it
// was never seen.
func checkoutAt(ctx context.Context, tx *store.Tx, identity string) (c Checkout, q Project, ok bool, err error) {
	err = tx.Get(ctx, append(scanProject(&q), c.scan()...), selectCheckout, identity)
	return c, q, err == nil, ignoreNone(err)
}

// eachCheckout calls fn with the checkouts that a query finds.
func eachCheckout(ctx context.Context, tx *store.Tx, fn func(c Checkout, q Project) error, query string, args ...any) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var c Checkout
		var q Project
		if err := r.Scan(append(scanProject(&q), c.scan()...)...); err != nil {
			return err
		}
		return fn(c, q)
	}, query, args...)
}

// firstReflogLine returns the first line of a repository's reflog, "" without one. It
// stays the same wherever the repository is moved, until git lets the entry expire.
func firstReflogLine(common string) string {
	head, err := regular.ReadHead(filepath.Join(common, "logs", "HEAD"), gitdir.MaxPointer)
	line, _, whole := bytes.Cut(head, []byte("\n"))
	if err != nil || !whole {
		return ""
	}
	return string(line)
}

// birthOf returns a hash that identifies a repository after it was moved, or "" if
// nothing identifies it.
func birthOf(common string) string {
	line := firstReflogLine(common)
	if line == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:8])
}

// clonedFrom returns the key of the remote from which a repository was cloned, according
// to its reflog, or "" if unknown.
func (p Location) clonedFrom() string {
	_, address, ok := strings.Cut(firstReflogLine(p.Identity), "\tclone: from ")
	if !ok {
		return ""
	}
	return NormalizeRemote(withoutCredentials(address), p.mainRoot())
}

// addKeys is addKey for several keys; without any the project has a uid by its id.
func addKeys(ctx context.Context, tx *store.Tx, project int64, keys []string) error {
	for i, key := range keys {
		if _, err := tx.Exec(ctx, insertKey, key, project, tx.Now().UnixNano()+int64(i)); err != nil {
			return err
		}
	}
	return setUID(ctx, tx, project)
}
