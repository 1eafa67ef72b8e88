package reservations

import (
	"context"
	"path/filepath"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
	"cairn/internal/store"
)

// pathResolver knows where the files of a project are: in all checkouts and worktrees of a
// repository, or in one directory.
type pathResolver struct {
	place     project.Location // of the project's root
	directory string           // "" for a repository

	// isCheckout reports whether another repository is a checkout of the project; nil for
	// a directory.
	isCheckout func(project.Location) bool
}

// treeOf returns the resolver for the paths of a project's files.
func treeOf(p *mail.Project, home string, isCheckout func(project.Location) bool) (pathResolver, error) {
	place, err := project.Locate(p.HumanKey, home)
	t := pathResolver{place: place}
	if p.IsRepository() {
		t.isCheckout = isCheckout
	}
	if p.IdentityMode == mail.ModeDir || place.Identity == "" {
		t.directory = place.Canonical()
	}
	return t, err
}

// relative returns an absolute path, which may contain wildcards, relative to the root of its
// worktree. ok is false outside the project.
func (t pathResolver) relative(abs string) (rel string, ok bool) {
	if t.isCheckout != nil {
		at, err := project.Locate(literalPath(abs), t.place.Home)
		if err == nil && at.Identity != "" && at.Identity != t.place.Identity && t.isCheckout(at) {
			rel = at.PathKey(filepath.FromSlash(abs))
			return rel, !project.IsAbsolute(rel)
		}
	}
	if t.directory == "" {
		rel = t.place.PathKey(filepath.FromSlash(abs))
		return rel, !project.IsAbsolute(rel)
	}
	for _, root := range [...]string{t.directory, t.place.Cwd} {
		if rel, ok := beneath(root, abs); ok {
			return rel, true
		}
	}
	place, err := project.Locate(filepath.Dir(filepath.FromSlash(abs)), t.place.Home)
	if err != nil {
		return "", false
	}
	return beneath(t.directory, place.Canonical()+"/"+mail.LastPart(abs))
}

// literalPath returns the leading folders of an absolute path that contain no wildcard.
func literalPath(abs string) string {
	path := literal(filepath.ToSlash(abs))
	if path == "" {
		path = "/"
	}
	return filepath.FromSlash(path)
}

// beneath returns a path relative to a directory, with slashes; "." for the directory itself. It
// does not read the disk.
func beneath(root, path string) (rel string, ok bool) {
	root, path = strings.TrimSuffix(filepath.ToSlash(root), "/"), strings.TrimSuffix(filepath.ToSlash(path), "/")
	rel, ok = strings.CutPrefix(path, root)
	switch {
	case !ok:
		return "", false
	case rel == "":
		return ".", true
	}
	return strings.TrimPrefix(rel, "/"), rel[0] == '/'
}

// relatives resolves the absolute paths among paths before a transaction begins. The returned
// function looks up the results, as pathpattern.Options.Relative.
func relatives(ctx context.Context, o *mail.Kernel, c mail.Caller, t *mail.Target, paths []string) (func(string) (string, bool), error) {
	known := map[string]string{}
	var files *pathResolver
	var err error
	look := func(abs string) (string, bool) {
		if files == nil && err == nil {
			files, err = treeOfTarget(ctx, o, c, t)
		}
		if files == nil {
			return "", false
		}
		rel, ok := files.relative(abs)
		if ok {
			known[abs] = rel
		}
		return rel, ok
	}
	for _, path := range paths[:min(len(paths), maxPaths)] {
		_, _ = pathpattern.Parse(path, pathpattern.Options{Relative: look}) // errors are reported in the transaction
	}
	return func(abs string) (string, bool) {
		rel, ok := known[abs]
		return rel, ok
	}, err
}

// treeOfTarget returns the resolver for the project that a call names, or nil if there is no such
// project.
func treeOfTarget(ctx context.Context, o *mail.Kernel, c mail.Caller, t *mail.Target) (*pathResolver, error) {
	var p *mail.Project
	err := o.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = t.Find(ctx, tx)
		return err
	})
	if err != nil || p == nil && t.Path == nil {
		return nil, err
	}
	if p == nil {
		p = &mail.Project{HumanKey: t.Path.HumanKey, IdentityMode: t.Path.Mode}
	}
	files, err := treeOf(p, c.Place.Home, checkoutOf(ctx, o, t, p))
	return &files, err
}

// checkoutOf returns a function that reports whether a repository is a checkout of a project. A
// project that is not stored yet has the key 0. Then repositories with the target's remote are its
// checkouts.
func checkoutOf(ctx context.Context, o *mail.Kernel, t *mail.Target, p *mail.Project) func(project.Location) bool {
	known := map[string]bool{}
	return func(at project.Location) bool {
		is, ok := known[at.Identity]
		if ok {
			return is
		}
		if p.RowKey == 0 {
			is = t.Path != nil && at.Remote != "" && at.Remote == t.Path.Place.Remote
		}
		err := o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			row, ok, err := project.Current(ctx, tx, at)
			is = is || ok && row.Key == p.RowKey
			return err
		})
		known[at.Identity] = is && err == nil
		return known[at.Identity]
	}
}

const maxPaths = 200 // per call

// RequestedPath is one path of a call.
type RequestedPath struct {
	Given   string // with surrounding space removed
	Pattern pathpattern.Pattern
}

// requestedPaths parses the paths of a call and removes duplicates.
//
// Errors: EMPTY_PATHS, INVALID_PATH, INVALID_ARGUMENT for too many.
func requestedPaths(s *mail.CallTx, paths []string, relative func(string) (string, bool)) ([]RequestedPath, error) {
	if len(paths) == 0 {
		return nil, mail.Errorf(mail.CodeEmptyPaths, "paths list cannot be empty").With("field", "paths").
			Hint("name files, folders or patterns such as src/**, relative to the root of the repository")
	}
	if len(paths) > maxPaths {
		return nil, mail.InvalidArgument("paths", len(paths), "paths has %d entries; %d are allowed", len(paths), maxPaths)
	}
	all, seen := make([]RequestedPath, 0, len(paths)), map[string]bool{}
	for _, path := range paths {
		p, err := pathpattern.Parse(path, pathpattern.Options{Relative: relative, FoldCase: s.Project.FoldsCase})
		if err != nil {
			return nil, badPath(path, fault.As(err))
		}
		text := p.String()
		if kept, err := s.Text("paths", text); err != nil || kept != text {
			return nil, badPath(path, fault.New(fault.Invalid, mail.CodePath, "the path holds what looks like a secret").
				WithHint("put a wildcard in its place"))
		}
		if !seen[text] {
			seen[text] = true
			all = append(all, RequestedPath{strings.TrimSpace(path), p})
		}
	}
	return all, nil
}

func badPath(path string, why *fault.Error) error {
	hint := why.Hint
	mail.Default(&hint, "give paths relative to the root of the repository")
	return mail.Errorf(mail.CodePath, "%s", why.Message).With("field", "paths").
		With("provided", mail.Printable(strings.ToValidUTF8(mail.Clip(path, mail.MaxShown), ""))).Hint(hint)
}
