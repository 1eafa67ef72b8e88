package mail

import (
	"crypto/sha1"
	"encoding/hex"
	"path/filepath"
	"strings"

	"cairn/internal/project"
)

// Package project decides which project a path in project_key refers to (mail §4, amendments
// §C). No file in a working tree can claim an identity.

// The identity modes of ensure_project. The default is modeCommon in a repository and ModeDir
// elsewhere, with a slug derived from the path.
const (
	ModeDir      = "dir"
	modeRemote   = "git-remote"
	modeToplevel = "git-toplevel"
	modeCommon   = "git-common-dir"
)

const (
	uidDigits   = 20
	maxSlug     = 120
	LocalRemote = "path:" // prefix of the key of a remote that is a path on this machine
)

// Identity describes the project that a path refers to, as derived from the files around the
// path.
type Identity struct {
	Place     project.Location
	Git       project.Git // of the repository that contains the path, if any
	Mode      string      // the mode in use
	asked     bool        // the mode was requested
	Canonical string      // the directory, the repository's main worktree or its common directory, depending on the mode
	HumanKey  string      // for a new project
	slug      string      // before any suffix
	Remote    *string     // normalized; nil if there is none, and for a repository on this machine
}

// Identify returns the identity of a path; mode "" is the default. It only reads files.
//
// Errors: INVALID_ARGUMENT for a relative path and for an unknown mode.
func Identify(path, home, mode string) (*Identity, error) {
	if !project.IsAbsolute(path) {
		return nil, InvalidArgument("human_key", path, "human_key must be an absolute directory path, not %s", Quoted(path))
	}
	place, err := project.Locate(path, home)
	if err != nil {
		return nil, err
	}
	i := &Identity{Place: place, Mode: mode, asked: mode != ""}
	i.Git = place.Git()
	if remote := place.Remote; remote != "" && !strings.HasPrefix(remote, LocalRemote) {
		i.Remote = &remote
	}
	switch mode {
	case ModeDir, modeRemote, modeToplevel, modeCommon:
	case "":
		i.Mode = modeCommon
	default:
		return nil, InvalidArgument("identity_mode", mode, "identity_mode is dir, git-remote, git-toplevel, git-common-dir or null, not %s", Quoted(mode))
	}
	if i.Git.Common == "" || mode == modeRemote && i.Remote == nil {
		i.Mode = ModeDir
	}
	if !i.IsRepository() {
		i.asDirectory()
	} else {
		i.asRepository()
	}
	return i, nil
}

func (i *Identity) asDirectory() {
	i.Mode, i.Canonical = ModeDir, i.Place.Canonical()
	i.HumanKey = i.Canonical
	i.slug = slugOf(i.HumanKey)
}

func (i *Identity) asRepository() {
	i.HumanKey, i.Canonical = i.Git.Main, i.Git.Main
	i.slug = slugOf(i.HumanKey)
	if i.asked {
		switch i.Mode {
		case modeRemote:
			i.slug = slugged(LastPart(*i.Remote), *i.Remote)
		case modeToplevel:
			i.slug = slugged(filepath.Base(i.Git.Main), i.Git.Main)
		case modeCommon:
			i.Canonical = i.Git.Common
			i.slug = slugged("repo", i.Git.Common)
		}
	}
}

// IsRepository reports whether the project is the repository, not a directory.
func (i *Identity) IsRepository() bool { return i.Mode != ModeDir }

// HashHex returns the first hexadecimal digits of a text's SHA-1.
func HashHex(text string, digits int) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}

// slugOf returns the slug of a project that is named after its path.
func slugOf(path string) string {
	slug := slugWord(path)
	if slug == "" {
		return "project"
	}
	if len(slug) > maxSlug {
		return strings.TrimRight(slug[:maxSlug-11], "-") + "-" + HashHex(path, 10)
	}
	return slug
}

// slugged returns a slug that consists of a short word and the hash of the named thing.
func slugged(word, of string) string {
	word = slugWord(word)
	if word == "" {
		word = "project"
	}
	return strings.TrimRight(Clip(word, maxSlug-11), "-") + "-" + HashHex(of, 10)
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
