package mail

import (
	"crypto/sha1"
	"encoding/hex"
	"path/filepath"
	"strings"

	"cairn/internal/project"
)

// A path as project_key (mail §4, amendments §C). Which project it names is decided by
// the package project; nothing in a working tree can claim an identity.

// The identity modes that ensure_project takes. Without one it is modeCommon in a
// repository and modeDir elsewhere, with a slug after the path.
const (
	modeDir      = "dir"
	modeRemote   = "git-remote"
	modeToplevel = "git-toplevel"
	modeCommon   = "git-common-dir"
)

const (
	uidDigits   = 20
	maxSlug     = 120
	localRemote = "path:" // begins the key of a remote that is a path on this machine
)

// identity is what the files around a path say about the project that it means.
type identity struct {
	place     project.Location
	git       project.Git // of the repository around it, if there is one
	mode      string      // the one used
	asked     bool        // it was asked for
	canonical string      // the directory, or the repository's main worktree, or its common directory, by mode
	humanKey  string      // for a new project
	slug      string      // before any suffix
	remote    *string     // normalised; nil without one, and for a repository on this machine
}

// identify looks at a path; mode "" is the usual one. It reads files only.
//
// Errors: INVALID_ARGUMENT for a relative path and an unknown mode.
func identify(path, home, mode string) (*identity, error) {
	if !project.IsAbsolute(path) {
		return nil, invalid("human_key", path, "human_key must be an absolute directory path, not %s", quoted(path))
	}
	place, err := project.Locate(path, home)
	if err != nil {
		return nil, err
	}
	i := &identity{place: place, mode: mode, asked: mode != ""}
	i.git = place.Git()
	if remote := place.Remote; remote != "" && !strings.HasPrefix(remote, localRemote) {
		i.remote = &remote
	}
	switch mode {
	case modeDir, modeRemote, modeToplevel, modeCommon:
	case "":
		i.mode = modeCommon
	default:
		return nil, invalid("identity_mode", mode, "identity_mode is dir, git-remote, git-toplevel, git-common-dir or null, not %s", quoted(mode))
	}
	if i.git.Common == "" || mode == modeRemote && i.remote == nil {
		i.mode = modeDir
	}
	if !i.isRepository() {
		i.asDirectory()
	} else {
		i.asRepository()
	}
	return i, nil
}

func (i *identity) asDirectory() {
	i.mode, i.canonical = modeDir, i.place.Canonical()
	i.humanKey = i.canonical
	i.slug = slugOf(i.humanKey)
}

func (i *identity) asRepository() {
	i.humanKey, i.canonical = i.git.Main, i.git.Main
	i.slug = slugOf(i.humanKey)
	if i.asked {
		switch i.mode {
		case modeRemote:
			i.slug = slugged(lastPart(*i.remote), *i.remote)
		case modeToplevel:
			i.slug = slugged(filepath.Base(i.git.Main), i.git.Main)
		case modeCommon:
			i.canonical = i.git.Common
			i.slug = slugged("repo", i.git.Common)
		}
	}
}

// isRepository reports whether the project is the repository, not a directory.
func (i *identity) isRepository() bool { return i.mode != modeDir }

// hexOf is the beginning of the SHA-1 of a text in hexadecimal digits.
func hexOf(text string, digits int) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// slugOf is the slug of a project that is named after its path.
func slugOf(path string) string {
	slug := slugWord(path)
	if slug == "" {
		return "project"
	}
	if len(slug) > maxSlug {
		return strings.TrimRight(slug[:maxSlug-11], "-") + "-" + hexOf(path, 10)
	}
	return slug
}

// slugged is a slug of a short word and the hash of what it names.
func slugged(word, of string) string {
	word = slugWord(word)
	if word == "" {
		word = "project"
	}
	return strings.TrimRight(clip(word, maxSlug-11), "-") + "-" + hexOf(of, 10)
}

func slugWord(text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if b.Len() > 0 && !strings.HasSuffix(b.String(), "-") {
			b.WriteByte('-')
		}
	}
	return strings.TrimRight(b.String(), "-")
}
