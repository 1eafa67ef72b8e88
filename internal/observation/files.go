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

// FileKeys are the files that a path may mean, likeliest first: seen from the
// working directory, from its repository's root, from the repository that the
// file itself lies in, and from projects to which it is a file outside of them. A
// path relative to one project says nothing of another's.
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

// FileReadings are the files of known projects that a path may mean, likeliest
// first.
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

// Below is a key as it is seen from a project's root.
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

// IsOutside tells the key of a file outside the repository, or outside the folder
// of a project that has none, whose keys are whole paths.
func IsOutside(key, root string) bool {
	if Below(key, root) != key {
		return false
	}
	return strings.HasPrefix(key, "/") || len(key) > 1 && key[1] == ':'
}

// RemoteOwner returns the host and the owner of a remote's URL, "" if it has none:
// "github.com/ada" of "https://github.com/ada/shop.git" and of "git@github.com:ada/shop".
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
