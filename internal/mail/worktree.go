package mail

import (
	"context"
	"path/filepath"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/pathpattern"
	"cairn/internal/project"
	"cairn/internal/store"
)

// tree is where the files of a project are: all checkouts and worktrees of a repository,
// or one directory.
type tree struct {
	place     project.Location // of the project's root
	directory string           // "" for a repository

	// isCheckout reports whether another repository is a checkout of the project; nil for
	// a directory.
	isCheckout func(project.Location) bool
}

// treeOf locates the files of a project.
func treeOf(p *Project, home string, isCheckout func(project.Location) bool) (tree, error) {
	place, err := project.Locate(p.HumanKey, home)
	t := tree{place: place}
	if p.isRepository() {
		t.isCheckout = isCheckout
	}
	if p.IdentityMode == modeDir || place.Identity == "" {
		t.directory = place.Canonical()
	}
	return t, err
}

// relative returns an absolute path, which may contain wildcards, relative to the root of
// the worktree that it is in; ok is false outside the project.
func (t tree) relative(abs string) (rel string, ok bool) {
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
	return beneath(t.directory, place.Canonical()+"/"+lastPart(abs))
}

// literalPath returns the leading folders of an absolute path that contain no wildcard.
func literalPath(abs string) string {
	path := literal(filepath.ToSlash(abs))
	if path == "" {
		path = "/"
	}
	return filepath.FromSlash(path)
}

// beneath is a path relative to a directory, in slashes; "." for itself. It does
// not look at the disk.
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

// relatives looks, before a transaction holds anybody up, at the absolute ones of
// some paths: where they are in the project, as pathpattern.Options.Relative.
func (o *Service) relatives(ctx context.Context, c Caller, t *target, paths []string) (func(string) (string, bool), error) {
	known := map[string]string{}
	var files *tree
	var err error
	look := func(abs string) (string, bool) {
		if files == nil && err == nil {
			files, err = o.treeOfTarget(ctx, c, t)
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
		_, _ = pathpattern.Parse(path, pathpattern.Options{Relative: look}) // what is wrong with it is said in the transaction
	}
	return func(abs string) (string, bool) {
		rel, ok := known[abs]
		return rel, ok
	}, err
}

// treeOfTarget is the tree of the project that a call names; nil if there is none.
func (o *Service) treeOfTarget(ctx context.Context, c Caller, t *target) (*tree, error) {
	var p *Project
	err := o.read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		p, err = t.find(ctx, tx)
		return err
	})
	if err != nil || p == nil && t.path == nil {
		return nil, err
	}
	if p == nil {
		p = &Project{HumanKey: t.path.humanKey, IdentityMode: t.path.mode}
	}
	files, err := treeOf(p, c.Place.Home, o.checkoutOf(ctx, t, p))
	return &files, err
}

// checkoutOf returns a function that reports whether a repository is a checkout of a
// project. The project of a target that is not stored yet has the key 0: then repositories
// with the target's remote are its checkouts.
func (o *Service) checkoutOf(ctx context.Context, t *target, p *Project) func(project.Location) bool {
	known := map[string]bool{}
	return func(at project.Location) bool {
		is, ok := known[at.Identity]
		if ok {
			return is
		}
		if p.key == 0 {
			is = t.path != nil && at.Remote != "" && at.Remote == t.path.place.Remote
		}
		err := o.read(ctx, func(ctx context.Context, tx *store.Tx) error {
			row, ok, err := project.Current(ctx, tx, at)
			is = is || ok && row.Key == p.key
			return err
		})
		known[at.Identity] = is && err == nil
		return known[at.Identity]
	}
}

const maxPaths = 200 // a call

// wish is one path of a call.
type wish struct {
	given   string // trimmed
	pattern pathpattern.Pattern
}

// wishes reads the paths of a call; duplicates collapse.
//
// Errors: EMPTY_PATHS, INVALID_PATH, INVALID_ARGUMENT for too many.
func (s *callTx) wishes(paths []string, relative func(string) (string, bool)) ([]wish, error) {
	if len(paths) == 0 {
		return nil, problemf(CodeEmptyPaths, "paths list cannot be empty").with("field", "paths").
			hint("name files, folders or patterns such as src/**, relative to the root of the repository")
	}
	if len(paths) > maxPaths {
		return nil, invalid("paths", len(paths), "paths has %d entries; %d are allowed", len(paths), maxPaths)
	}
	all, seen := make([]wish, 0, len(paths)), map[string]bool{}
	for _, path := range paths {
		p, err := pathpattern.Parse(path, pathpattern.Options{Relative: relative, FoldCase: s.p.FoldsCase})
		if err != nil {
			return nil, badPath(path, fault.As(err))
		}
		text := p.String()
		if kept, err := s.text("paths", text); err != nil || kept != text {
			return nil, badPath(path, fault.New(fault.Invalid, CodePath, "the path holds what looks like a secret").
				WithHint("put a wildcard in its place"))
		}
		if !seen[text] {
			seen[text] = true
			all = append(all, wish{strings.TrimSpace(path), p})
		}
	}
	return all, nil
}

func badPath(path string, why *fault.Error) error {
	hint := why.Hint
	def(&hint, "give paths relative to the root of the repository")
	return problemf(CodePath, "%s", why.Message).with("field", "paths").
		with("provided", printable(strings.ToValidUTF8(clip(path, maxShown), ""))).hint(hint)
}
