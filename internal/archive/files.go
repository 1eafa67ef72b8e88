package archive

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

	// tempName is where a file is written before it gets its name. Only one
	// process writes at a time, so one name per folder is enough, and what a kill
	// leaves behind the next write there takes over.
	tempName = ".cairn-writing"
)

// WriteFiles makes the work tree hold files: folders 0700, files 0600, each
// written beside its place and renamed, so that a reader sees the old or the new
// one. What is equal already is not written again, and written says how many
// were. A deleted file takes the folders with it that it leaves empty. Nothing
// outside the folder is reached, whatever links stand in it. The files are not
// synced: what survives a power cut is what was committed.
//
// Repeating it is safe, also after a kill in the middle. Errors: Invalid with
// CodePath, before anything is written; Unavailable with CodeGone or CodeFiles,
// when some may be written and others not.
func (r *Repository) WriteFiles(ctx context.Context, files []File) (written int, err error) {
	for _, f := range files {
		if err := checkPath(f.Path); err != nil {
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

// DeletePattern names files that shall not be there: those in a folder, not below it, whose
// names begin and end so.
type DeletePattern struct{ Folder, Begin, End string }

// matching are the files, as deleted, that main or the work tree holds of those that
// shall not be there. Errors: Unavailable as for Open, and with CodeFiles.
func (r *Repository) matching(ctx context.Context, all []DeletePattern) (out []File, err error) {
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
	return fault.Wrap(err, fault.Unavailable, CodeFiles, "archive "+r.git.dir+": "+path+" cannot be written: "+reason(err)).
		WithHint("check the space on the volume and the rights of the folder; the archive then catches up by itself")
}

// workTree writes files below a folder. It keeps the folders open in which it
// wrote, since the next file is often for one of them.
type workTree struct {
	root    *os.Root
	folders map[string]*os.Root
}

const maxFolders = 256 // that are kept open

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

// folder opens a folder, which it makes if it is not there.
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

// put makes one file as it shall be, and reports whether it had to do anything.
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
	w.closeFolders() // some may go
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
	old, err := folder.ReadFile(name) // a file that cannot be read is replaced, or that says why not
	return err == nil && bytes.Equal(old, content), nil
}

// checkPath refuses what cannot be a file of an archive on every system: paths
// out of the folder, names that begin with a dot (git's own among them), names
// that Windows or macOS cannot keep, takes for devices or for another name, and
// too long ones. Slashes part the names.
func checkPath(p string) error {
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
	return fault.Newf(fault.Invalid, CodePath, "an archive cannot hold %q: it %s", p, why)
}

func badName(name string) string {
	lower := strings.ToLower(name)
	stem, _, _ := strings.Cut(lower, ".")
	switch {
	case name == "":
		return "has an empty name in it"
	case len(name) > maxName:
		return "has too long a name in it"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case name[0] == '.':
		return "has a name in it that begins with a dot"
	case strings.HasSuffix(name, ".") || strings.HasSuffix(name, " "):
		return "has a name in it that ends with a dot or a space"
	case strings.ContainsAny(name, "\\:*?\"<>|") || strings.ContainsFunc(name, invisible):
		return "has a character in it that not every system can keep"
	case isDevice(strings.TrimRight(stem, " ")):
		return "has the name of a device in it"
	case strings.HasPrefix(lower, "git~"):
		return "has a name in it that some systems take for .git"
	}
	return ""
}

// invisible tells control characters, and those that macOS leaves out of names.
func invisible(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) }

func isDevice(stem string) bool {
	if slices.Contains([]string{"con", "prn", "aux", "nul", "conin$", "conout$"}, stem) {
		return true
	}
	rest, port := strings.CutPrefix(stem, "com")
	if !port {
		rest, port = strings.CutPrefix(stem, "lpt")
	}
	return port && utf8.RuneCountInString(rest) == 1 && strings.Contains("0123456789¹²³", rest)
}
