package project

import (
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/project/gitdir"
)

// Location describes a working directory and the repository around it, as read from
// files. It is a plain value; use Locate to create one.
type Location struct {
	Cwd       string // absolute and clean, otherwise as given
	Home      string // the user's home directory, "" if unknown
	Gone      bool   // Cwd does not exist
	Identity  string // the repository's canonical common git directory, "" outside one
	Root      string // root of the worktree that holds Cwd, links resolved; "" outside one and inside a bare repository
	Slug      string // the wanted project id, without suffix (observations §2, rules 3 and 5)
	Name      string // display name, ≤ 200 characters
	OriginURL string // of the repository's remote, without credentials, "" without one
	Remote    string // the key of that remote (see NormalizeRemote), "" without one

	real      string // Cwd with its symbolic links resolved
	subject   string // outside a repository: the folder that gives the project its name
	kind      placeKind
	foldsCase bool   // core.ignorecase of the repository
	caseIsSet bool   // the repository's configuration has core.ignorecase
	mainTree  string // its core.worktree, as written there
}

// placeKind is the rule of observations §2 that names the project.
type placeKind uint8

const (
	inRepository placeKind = iota // rule 3
	inFolder                      // rule 5: the folder's name
	inHome                        // rule 5: home
	atTop                         // rule 5: unknown
)

// Locate reads the surroundings of a working directory (observations §2). A relative path
// is relative to the process's own directory. home may be "". It only reads files, climbs
// at most 64 folders, and treats broken files as missing.
//
// Errors: Invalid for a blank cwd, and for a relative one if the process has no working
// directory.
func Locate(cwd, home string) (Location, error) {
	if strings.TrimSpace(cwd) == "" {
		return Location{}, fault.New(fault.Invalid, "cwd_blank", "the working directory must not be blank")
	}
	if home != "" {
		home = filepath.Clean(home)
	}
	p := Location{Home: home}
	if isForeign(cwd) {
		p.Cwd, p.Gone = cleanForeign(cwd), true
		p.real = p.Cwd
		p.nameFolder()
		return p, nil
	}
	var err error
	if p.Cwd, err = filepath.Abs(cwd); err != nil {
		return Location{}, fault.Wrap(err, fault.Invalid, "cwd_relative", "a relative working directory is not possible here")
	}
	p.real, p.Gone = gitdir.Physical(p.Cwd)
	r, ok := gitdir.Enclosing(p.real, home)
	if !ok && p.real != p.Cwd {
		r, ok = gitdir.Enclosing(p.Cwd, home)
	}
	if !ok {
		p.nameFolder()
		return p, nil
	}
	p.Identity, p.Root = r.Identity, r.Root
	p.Slug, p.Name = nameRepository(r.Identity)
	config := gitdir.Config(r.Identity)
	remote := gitdir.Remote(config)
	p.OriginURL = withoutCredentials(remote)
	p.Remote = NormalizeRemote(remote, p.mainRoot())
	ignores, set := gitdir.ConfigEntry(config, "core", "ignorecase")
	p.foldsCase, p.caseIsSet = gitdir.IsTrue(ignores, set), set
	p.mainTree, _ = gitdir.ConfigEntry(config, "core", "worktree")
	if p.Gone && p.Root != "" {
		p.Root = lostWorktree(p.Root, p.real, false)
	}
	return p, nil
}

// nameRepository applies rule 3: the name of the folder that holds the common
// .git, or of a bare repository without its extension. A hidden git directory
// under another name counts as .git.
func nameRepository(identity string) (slug, name string) {
	base := filepath.Base(identity)
	if strings.HasPrefix(base, ".") {
		base = filepath.Base(filepath.Dir(identity))
	} else {
		base = strings.TrimSuffix(base, ".git")
	}
	return named(base)
}

// nameFolder applies rule 5. A former worktree gets the name of the folder around it
// (observations §12).
func (p *Location) nameFolder() {
	p.subject = p.Cwd
	if main, _, ok := splitWorktree(p.Cwd); ok && p.Gone {
		p.subject = filepath.FromSlash(main)
	}
	switch {
	case gitdir.SameFolder(p.subject, p.Home):
		p.kind, p.Slug, p.Name = inHome, homeID, homeID
	case isTop(p.subject):
		p.kind, p.Slug, p.Name = atTop, unknownID, unknownID
	default:
		p.kind = inFolder
		p.Slug, p.Name = named(filepath.Base(p.subject))
	}
}

func named(base string) (slug, name string) {
	slug, name = slugOf(base), displayName(base)
	if strings.Trim(name, ` /\.`) == "" {
		name = slug
	}
	return slug, name
}

// isTop reports whether a path is the root of a file system.
func isTop(p string) bool {
	if isForeign(p) {
		return len(p) <= len("C:/")
	}
	return filepath.Dir(p) == p
}

// mainRoot returns the root of the repository's main worktree, or the best approximation;
// "" outside a repository.
func (p Location) mainRoot() string {
	switch {
	case p.Identity == "":
		return ""
	case filepath.Base(p.Identity) == ".git":
		return filepath.Dir(p.Identity)
	case p.Root != "":
		return p.Root
	}
	return p.Identity
}

// recordedRoot returns the folder that is stored in the project's row, "" if it is too
// long to exist.
func (p Location) recordedRoot() string {
	root := p.mainRoot()
	if root == "" {
		root = p.subject
	}
	if len(root) > gitdir.MaxPath {
		return ""
	}
	return root
}

// Absolute returns a file's path joined to Cwd and cleaned, in the separators of this
// system; "" for "". It does not access the disk (observations §2).
func (p Location) Absolute(file string) string {
	switch {
	case file == "":
		return ""
	case isForeign(file):
		return cleanForeign(file)
	case filepath.IsAbs(file):
		return filepath.Clean(file)
	case isForeign(p.Cwd):
		return cleanForeign(p.Cwd + "/" + file)
	case runtime.GOOS == "windows" && (file[0] == '/' || file[0] == '\\'):
		return filepath.Clean(filepath.VolumeName(p.Cwd) + file)
	}
	return filepath.Join(p.Cwd, file)
}

// isForeign reports whether a path is a Windows path on another system. Transcripts may
// contain such paths.
func isForeign(p string) bool {
	if runtime.GOOS == "windows" || len(p) < 2 {
		return false
	}
	letter := p[0] >= 'a' && p[0] <= 'z' || p[0] >= 'A' && p[0] <= 'Z'
	return letter && p[1] == ':' && (len(p) == 2 || p[2] == '\\' || p[2] == '/') || strings.HasPrefix(p, `\\`)
}

func cleanForeign(p string) string {
	p = slashed(p)
	clean := path.Clean(p)
	if strings.HasPrefix(p, "//") {
		clean = "/" + clean
	}
	return clean
}
