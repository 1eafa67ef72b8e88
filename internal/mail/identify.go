package mail

import (
	"crypto/sha1"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/project"
)

// The identity of a project as its files tell it (mail §4).

// The identity modes that ensure_project takes. Without one it is modeCommon in a
// repository and modeDir elsewhere, with a slug after the path.
const (
	modeDir      = "dir"
	modeRemote   = "git-remote"
	modeToplevel = "git-toplevel"
	modeCommon   = "git-common-dir"
)

const (
	committedMarker = ".cairn-project-id" // in the root of the main worktree
	privateMarker   = "cairn-project-id"  // in the common git directory
	uidDigits       = 20
	maxSlug         = 120
)

// identity is what the files around a path say about the project that it means.
type identity struct {
	place     project.Place
	git       project.Git // of the repository around it, if there is one
	mode      string      // the one used
	asked     bool        // it was asked for
	canonical string      // the directory, or the repository's main worktree, or its common directory, by mode
	humanKey  string      // for a new project
	slug      string      // before any suffix
	remote    *string     // normalised
	uid       string
	committed bool // the uid is the committed marker's
	private   bool // a private marker is there
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
	if remote := normalizeRemote(place.OriginURL); remote != "" {
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
	if i.uid = marked(filepath.Join(i.humanKey, committedMarker)); i.uid != "" {
		i.committed = true
		return
	}
	i.uid = hexOf(i.humanKey, uidDigits)
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
	if i.uid = marked(filepath.Join(i.git.Main, committedMarker)); i.uid != "" {
		i.committed = true
		return
	}
	if line, ok := project.ReadMarker(filepath.Join(i.git.Common, privateMarker)); ok && isUID(line) {
		i.uid, i.private = line, true
		return
	}
	if i.remote != nil {
		branch := i.git.DefaultBranch
		if branch == "" {
			branch = "main"
		}
		i.uid = hexOf(*i.remote+"@"+branch, uidDigits)
		return
	}
	i.uid = hexOf(i.git.Common, uidDigits)
}

// isRepository reports whether the project is the repository, not a directory.
func (i *identity) isRepository() bool { return i.mode != modeDir }

// remember writes the private marker, so that the repository keeps its project_uid
// when it is moved or gets another origin. A repository that cannot be written to
// goes without.
func (i *identity) remember(uid string) {
	if !i.isRepository() || i.committed || i.private {
		return
	}
	f, err := os.CreateTemp(i.git.Common, privateMarker+"-*")
	if err != nil {
		return
	}
	_, err = f.WriteString(uid + "\n")
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(i.git.Common, privateMarker))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // as best we can
	}
}

// marked is the project_uid that a committed marker gives: its own if it holds one,
// else one made from the word in it; "" without a marker.
func marked(file string) string {
	line, ok := project.ReadMarker(file)
	switch {
	case !ok || line == "" || !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsSpace):
		return ""
	case isUID(strings.ToLower(line)):
		return strings.ToLower(line)
	}
	return hexOf(line, uidDigits)
}

func isUID(text string) bool {
	return len(text) == uidDigits && strings.Trim(text, "0123456789abcdef") == ""
}

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

// normalizeRemote is a remote's address as host/owner/repository in lower case,
// whatever form it is written in: a URL, with or without user and port, or Git's
// short one for SSH. It is "" for a path on this machine and for what names no
// repository.
func normalizeRemote(address string) string {
	host, path, ok := remoteParts(strings.TrimSpace(address))
	if !ok || !utf8.ValidString(host+path) || strings.ContainsFunc(host+path, unicode.IsControl) {
		return ""
	}
	host = strings.ToLower(strings.TrimRight(host, "."))
	var parts []string
	for part := range strings.SplitSeq(strings.ToLower(path), "/") {
		switch part = strings.TrimSpace(part); part {
		case "", ".":
		case "..":
			return ""
		default:
			parts = append(parts, part)
		}
	}
	for n := len(parts); n > 0 && strings.HasSuffix(parts[n-1], ".git"); n = len(parts) {
		if parts[n-1] = strings.TrimSuffix(parts[n-1], ".git"); parts[n-1] == "" {
			parts = parts[:n-1]
		}
	}
	if host == "" || len(parts) == 0 || strings.ContainsAny(host, "/@") || strings.ContainsFunc(host, unicode.IsSpace) {
		return ""
	}
	return host + "/" + strings.Join(parts, "/")
}

// remoteParts are the host and the path of a remote's address.
func remoteParts(address string) (host, path string, ok bool) {
	if strings.Contains(address, "://") {
		u, err := url.Parse(address)
		if err != nil || strings.EqualFold(u.Scheme, "file") {
			return "", "", false
		}
		return u.Hostname(), u.Path, true
	}
	if _, host, found := strings.Cut(address, "@"); found && !strings.ContainsAny(address[:len(address)-len(host)], "/:") {
		address = host
	}
	if rest, bracketed := strings.CutPrefix(address, "["); bracketed {
		host, path, ok = strings.Cut(rest, "]:")
	} else {
		host, path, ok = strings.Cut(address, ":")
	}
	return host, path, ok && len(host) > 1 && !strings.ContainsAny(host, `/\`) // one letter is a drive
}
