package repository

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cairn/internal/fault"
)

const (
	maxPath = 1024 // bytes of a path, 255 of each name in it
	maxName = 255

	// tempName is the temporary name of a file being written. Only one process writes at
	// a time, so one name per folder is enough. The next write replaces a file left by a
	// killed process.
	tempName = ".cairn-writing"
)

// WriteFiles writes files to the work tree, with folders 0700 and files 0600. It writes
// each file under a temporary name and renames it, so that readers see the old or the new
// file. It skips files that are equal already; written is the number of written files.
// With a deleted file it removes folders that become empty. It writes nothing outside the
// folder, whatever links are in it. The files are not synced: only commits survive a
// power cut.
//
// It is idempotent and safe to retry after a kill. Errors: Invalid with CodePath, before
// anything is written; Unavailable with CodeGone or CodeFiles, when some files may be
// written and others not.
func (r *Repository) WriteFiles(ctx context.Context, files []File) (written int, err error) {
	for _, f := range files {
		if err := CheckPath(f.Path); err != nil {
			return 0, err
		}
	}
	if gone := r.git.gone(); gone != nil {
		return 0, gone
	}
	err = r.locked(ctx, filesLock, func() error {
		root, err := os.OpenRoot(r.git.dir)
		if err != nil {
			return r.unwritten("", err)
		}
		tree := workTree{root: root, folders: map[string]*os.Root{}}
		defer tree.close()
		for _, f := range files {
			if err := ctx.Err(); err != nil {
				return err
			}
			did, err := tree.put(f)
			if err != nil {
				return r.unwritten(f.Path, err)
			}
			if did {
				written++
			}
		}
		return nil
	})
	return written, err
}

// DeletePattern selects files to delete: those directly in a folder whose names have the
// given prefix and suffix.
type DeletePattern struct{ Folder, Begin, End string }

// Matching returns the files in main or the work tree that match delete patterns, marked
// as deleted. Errors: Unavailable as for Open, and with CodeFiles.
func (r *Repository) Matching(ctx context.Context, all []DeletePattern) (out []File, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	tree, err := r.Tree(ctx)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.git.dir)
	if err != nil {
		return nil, r.unwritten("", err)
	}
	defer func() { _ = root.Close() }()
	names := map[string][]string{} // by folder
	for p := range tree {
		names[path.Dir(p)] = append(names[path.Dir(p)], path.Base(p))
	}
	read := map[string]bool{}
	for _, g := range all {
		if !read[g.Folder] {
			read[g.Folder] = true
			entries, err := fs.ReadDir(root.FS(), g.Folder)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, r.unwritten(g.Folder, err)
			}
			for _, e := range entries {
				names[g.Folder] = append(names[g.Folder], e.Name())
			}
		}
		for _, name := range names[g.Folder] {
			if len(name) >= len(g.Begin)+len(g.End) && strings.HasPrefix(name, g.Begin) && strings.HasSuffix(name, g.End) && badName(name) == "" {
				out = append(out, File{Path: g.Folder + "/" + name, Deleted: true})
			}
		}
	}
	return out, nil
}

func (r *Repository) unwritten(path string, err error) error {
	return fault.Wrap(err, fault.Unavailable, CodeFiles, "archive "+r.git.dir+": "+path+" cannot be written: "+Reason(err)).
		WithHint("check the free space of the volume and the permissions of the folder; the archive then catches up automatically")
}

// workTree writes files below a folder. It keeps folders open, because the next file is
// often in one of them.
type workTree struct {
	root    *os.Root
	folders map[string]*os.Root
}

const maxFolders = 256 // maximum number of open folders

func (w *workTree) close() {
	w.closeFolders()
	_ = w.root.Close()
}

func (w *workTree) closeFolders() {
	for _, f := range w.folders {
		_ = f.Close()
	}
	clear(w.folders)
}

// folder opens a folder. It creates a missing one.
func (w *workTree) folder(dir string) (*os.Root, error) {
	if dir == "." {
		return w.root, nil
	}
	if f := w.folders[dir]; f != nil {
		return f, nil
	}
	f, err := w.root.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := w.root.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		f, err = w.root.OpenRoot(dir)
	}
	if err != nil {
		return nil, err
	}
	if len(w.folders) == maxFolders {
		w.closeFolders()
	}
	w.folders[dir] = f
	return f, nil
}

// put brings one file to its wanted state and reports whether it changed anything.
func (w *workTree) put(f File) (did bool, err error) {
	if f.Deleted {
		return w.remove(f.Path)
	}
	folder, err := w.folder(path.Dir(f.Path))
	if err != nil {
		return false, err
	}
	name := path.Base(f.Path)
	if same, err := holds(folder, name, f.Content); same || err != nil {
		return false, err
	}
	err = folder.WriteFile(tempName, f.Content, 0o600)
	if err == nil {
		err = folder.Rename(tempName, name)
	}
	if err != nil {
		_ = folder.Remove(tempName)
	}
	return err == nil, err
}

func (w *workTree) remove(name string) (did bool, err error) {
	if err := w.root.Remove(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	w.closeFolders() // some may be deleted
	for dir := path.Dir(name); dir != "." && w.root.Remove(dir) == nil; {
		dir = path.Dir(dir)
	}
	return true, nil
}

// holds reports whether a regular file in a folder has this content.
func holds(folder *os.Root, name string, content []byte) (bool, error) {
	info, err := folder.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular() || info.Size() != int64(len(content)):
		return false, nil
	}
	old, err := folder.ReadFile(name) // an unreadable file is replaced, or replacing it returns the error
	return err == nil && bytes.Equal(old, content), nil
}

// CheckPath rejects paths that some system does not support. It rejects paths that leave
// the folder, names that begin with a dot (such as .git), and long names. It also rejects
// names that Windows or macOS cannot store or treat as devices or as other names. Names
// are separated by slashes.
func CheckPath(p string) error {
	if len(p) > maxPath {
		return badPath(p[:64]+"…", "is too long")
	}
	for name := range strings.SplitSeq(p, "/") {
		if why := badName(name); why != "" {
			return badPath(p, why)
		}
	}
	return nil
}

func badPath(p, why string) error {
	return fault.Newf(fault.Invalid, CodePath, "an archive cannot contain %q: it %s", p, why)
}

func badName(name string) string {
	lower := strings.ToLower(name)
	stem, _, _ := strings.Cut(lower, ".")
	switch {
	case name == "":
		return "contains an empty name"
	case len(name) > maxName:
		return "contains a name that is too long"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case name[0] == '.':
		return "contains a name that begins with a dot"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "contains a name that ends with a dot or a space"
	case strings.ContainsAny(name, "\\:*?\"<>|") || strings.ContainsFunc(name, invisible):
		return "contains a character that not every system supports"
	case IsDevice(strings.TrimRight(stem, " ")):
		return "contains the name of a device"
	case strings.HasPrefix(lower, "git~"):
		return "contains a name that some systems treat as .git"
	}
	return ""
}

// invisible reports whether c is a control character, or one that macOS ignores in names.
func invisible(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) }

// IsDevice reports whether Windows takes a name in lower case, without its suffix, for a
// device.
func IsDevice(stem string) bool {
	if slices.Contains([]string{"con", "prn", "aux", "nul", "conin$", "conout$"}, stem) {
		return true
	}
	rest, port := strings.CutPrefix(stem, "com")
	if !port {
		rest, port = strings.CutPrefix(stem, "lpt")
	}
	return port && utf8.RuneCountInString(rest) == 1 && strings.Contains("0123456789¹²³", rest)
}
