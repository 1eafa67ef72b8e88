package observation

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"

	"cairn/internal/project"
	"cairn/internal/store"
)

// FileKey is a file of a project.
type FileKey struct {
	Project int64
	Path    string
}

// FileKeys returns the files that a path may mean, most likely first: relative to the working
// directory, to its repository's root, and to the repository that contains the file. Then it
// returns the path as an outside file of each project. A path relative to one project does not
// identify a file of another.
func FileKeys(ctx context.Context, tx *store.Tx, place project.Location, file, home string) ([]FileKey, error) {
	out, err := FileReadings(ctx, tx, place, file, home)
	outside := project.Location{}.PathKey(place.Absolute(file))
	return out, errors.Join(err, tx.Each(ctx, func(r *sql.Rows) error {
		f := FileKey{Path: outside}
		err := r.Scan(&f.Project)
		out = append(out, f)
		return err
	}, selectProjectKeys))
}

// FileReadings returns the files of known projects that a path may mean, most likely first.
func FileReadings(ctx context.Context, tx *store.Tx, place project.Location, file, home string) (out []FileKey, err error) {
	add := func(p project.Location, key func(project.Location) string) error {
		pr, ok, err := project.Current(ctx, tx, p)
		if ok && err == nil {
			out = append(out, FileKey{pr.Key, key(p.Within(pr))})
		}
		return err
	}
	err = add(place, func(p project.Location) string { return p.PathKey(file) })
	if !filepath.IsAbs(file) {
		err = errors.Join(err, add(place, func(p project.Location) string { return p.PathKey(filepath.Join(p.Root, file)) }))
	}
	abs := place.Absolute(file)
	own, lerr := project.Locate(filepath.Dir(abs), home)
	if lerr == nil {
		err = errors.Join(err, add(own, func(p project.Location) string { return p.PathKey(abs) }))
	}
	return out, err
}

const selectProjectKeys = `SELECT key FROM projects ORDER BY key`

// Below returns a key relative to a project's root. A key that is not below the root is returned
// unchanged.
func Below(key, root string) string {
	if root == "" {
		return key
	}
	root = filepath.ToSlash(root)
	if len(key) > len(root) && key[len(root)] == '/' && strings.HasPrefix(key, root) {
		return key[len(root)+1:]
	}
	return key
}

// IsOutside reports whether a key is a file outside the repository, or outside the folder of a
// project without one. Such keys are absolute paths.
func IsOutside(key, root string) bool {
	if Below(key, root) != key {
		return false
	}
	return strings.HasPrefix(key, "/") || len(key) > 1 && key[1] == ':'
}

// RemoteOwner returns the host and owner of a remote's URL, "" if it has none. Both
// "https://github.com/ada/shop.git" and "git@github.com:ada/shop" return "github.com/ada".
func RemoteOwner(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		url = rest
	}
	if user, rest, ok := strings.Cut(url, "@"); ok && !strings.Contains(user, "/") {
		url = rest
	}
	host, rest, ok := strings.Cut(strings.Replace(url, ":", "/", 1), "/")
	owner, _, below := strings.Cut(rest, "/")
	if !ok || !below || host == "" || owner == "" {
		return ""
	}
	return strings.ToLower(host) + "/" + owner
}
