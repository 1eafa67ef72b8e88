package messages

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"cairn/internal/mail"
	"cairn/internal/project"
	"cairn/internal/store"
)

// file is an attachment that was read.
type file struct {
	name  string // as in the metadata
	media string
	data  []byte
}

// attach returns the metadata of a draft's files and of the images in its body. The sender's
// attachments_policy decides how files are stored.
//
// Errors: those of reading the files; INVALID_ARGUMENT if the policy permits no files.
func attach(s *mail.CallTx, me *mail.Agent, d *draft) (out attachments, err error) {
	all := []mail.Attachment{}
	switch {
	case d.noFiles != nil:
		return out, d.noFiles
	case len(d.files) > 0 && me.AttachmentsPolicy == "none":
		return out, mail.InvalidArgument("attachment_paths", nil, "agent %s attaches no files: its attachments_policy is none", mail.Quoted(me.Name))
	}
	for _, f := range d.files {
		sum := sha1.Sum(f.data)
		n := int64(len(f.data))
		b := &mail.Blob{SHA1: hex.EncodeToString(sum[:]), MediaType: f.media, Bytes: n, Data: f.data}
		a := mail.Attachment{Type: "file", MediaType: f.media, Bytes: &n, SHA1: b.SHA1, OriginalPath: f.name}
		a.Width, a.Height = dimensions(f.media, f.data)
		if me.AttachmentsPolicy == "inline" || me.AttachmentsPolicy == "auto" && isImage(f.media) && len(f.data) <= s.Config.InlineImage {
			a.Type, a.Data = "inline", base64.StdEncoding.EncodeToString(f.data)
		} else {
			a.Path = b.Path(f.media)
		}
		all, out.blobs = append(all, a), append(out.blobs, b)
	}
	for _, media := range embedded(d.body) {
		all = append(all, mail.Attachment{Type: "inline", MediaType: media})
	}
	out.text, err = json.Marshal(all)
	return out, err
}

func isImage(media string) bool {
	switch media {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

const maxMediaType = 64

// embedded returns the media types of the images that a Markdown body contains as data: URLs,
// in order.
func embedded(body string) (types []string) {
	for {
		_, rest, found := strings.Cut(body, "](data:image/")
		if !found {
			return types
		}
		body = rest
		end := strings.IndexAny(rest, ";,)")
		if end <= 0 || end > maxMediaType || rest[end] == ')' || !mail.IsPlain(strings.ReplaceAll(rest[:end], "+", "-")) {
			continue
		}
		types = append(types, "image/"+strings.ToLower(rest[:end]))
	}
}

// readFiles reads the attachments of a message before its transaction, so that no other call
// waits for a file.
//
// Errors: INVALID_PATH for a file outside the project or one that may never be attached;
// INVALID_ARGUMENT for a file that is missing, unreadable or not regular; MESSAGE_TOO_LARGE.
func readFiles(ctx context.Context, o *mail.Kernel, t *mail.Target, paths []string) (out []file, err error) {
	if len(paths) == 0 {
		return nil, nil
	}
	if len(paths) > maxFiles {
		return nil, mail.InvalidArgument("attachment_paths", len(paths), "a message has at most %d attachments, not %d", maxFiles, len(paths))
	}
	roots, err := roots(ctx, o, t)
	if err != nil {
		return nil, err
	}
	total := 0
	for _, path := range paths {
		f, err := readFile(o, roots, path)
		if err != nil {
			return nil, err
		}
		if total += len(f.data); total > o.Config.MaxAttachments {
			return nil, tooLarge("attachment_paths", total, o.Config.MaxAttachments)
		}
		if f.name, err = o.Text("attachment_paths", f.name); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// roots returns the directories of a project whose files can be attached: the worktree or
// checkout that the call names, if any, and the project's own directory.
func roots(ctx context.Context, o *mail.Kernel, t *mail.Target) (out []string, err error) {
	err = o.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		p, err := t.Find(ctx, tx) // also decides whether the path is a separate directory
		if err != nil {
			return err
		}
		if t.Path != nil && t.Path.IsRepository() && t.Path.Git.Toplevel != "" {
			out = append(out, t.Path.Git.Toplevel)
		}
		switch {
		case p != nil:
			out = append(out, p.HumanKey)
		case t.Path != nil:
			out = append(out, t.Path.HumanKey)
		default:
			return t.NotFound(ctx, tx)
		}
		return nil
	})
	return out, err
}

const maxFiles = 200

func readFile(o *mail.Kernel, roots []string, path string) (f file, err error) {
	if err := mail.CheckText("attachment_paths", path); err != nil {
		return f, err
	}
	root, name, err := below(o, roots, strings.TrimSpace(path))
	if err != nil {
		return f, err
	}
	in, err := openBelow(o, root, name)
	if err != nil {
		return f, badFile(path, err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	info, err := in.Stat()
	most := o.Config.MaxAttachment
	switch {
	case err != nil:
		return f, badFile(path, err)
	case info.Size() > int64(most):
		return f, tooLarge("attachment_paths", int(info.Size()), most)
	}
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(in, int64(most)+1))
	switch {
	case err != nil:
		return f, badFile(path, err)
	case n > int64(most): // it has grown
		return f, tooLarge("attachment_paths", int(n), most)
	}
	return file{name: filepath.ToSlash(name), media: o.Config.MediaType(b.Bytes()), data: b.Bytes()}, nil
}

// below splits a path into the root that it must stay in and the path below it.
func below(o *mail.Kernel, roots []string, path string) (root, name string, err error) {
	switch {
	case path == "":
		return "", "", outsidePath(path, "is empty")
	case !project.IsAbsolute(path):
		name = filepath.Clean(filepath.FromSlash(path))
		if !filepath.IsLocal(name) {
			return "", "", outsidePath(path, "leads out of the project")
		}
		return roots[0], name, nil
	}
	path = filepath.Clean(path)
	for _, root := range roots {
		name, err := filepath.Rel(root, path)
		if err == nil && filepath.IsLocal(name) {
			return root, name, nil
		}
	}
	if !o.Config.AbsoluteAttachments {
		return "", "", outsidePath(path, "lies outside the project")
	}
	root = filepath.VolumeName(path) + string(filepath.Separator)
	if name, err = filepath.Rel(root, path); err != nil || !filepath.IsLocal(name) {
		return "", "", outsidePath(path, "is no path of a file")
	}
	return root, name, nil
}

func outsidePath(path, why string) *mail.Error {
	return mail.Errorf(mail.CodePath, "the attachment %s %s", mail.Quoted(path), why).With("field", "attachment_paths").With("provided", mail.Clip(path, mail.MaxShown)).
		Hint("name a file of the project by its path relative to the project's root")
}

// errBarred is the error for a file that may never be attached, and for a link that leaves the
// directory.
var errBarred = errors.New("leads out of the project, or to what is never attached")

// errNoFile is the error for anything but a regular file.
var errNoFile = errors.New("is no regular file")

func badFile(path string, err error) error {
	switch {
	case errors.Is(err, errBarred):
		return outsidePath(path, errBarred.Error())
	case errors.Is(err, errNoFile):
		return mail.InvalidArgument("attachment_paths", path, "the attachment %s %s", mail.Quoted(path), errNoFile)
	case errors.Is(err, fs.ErrNotExist):
		return mail.InvalidArgument("attachment_paths", path, "the attachment %s is not there", mail.Quoted(path))
	}
	return mail.InvalidArgument("attachment_paths", path, "the attachment %s cannot be read", mail.Quoted(path))
}

// walk opens a file below a directory, one path element at a time. It resolves links itself.
// It opens exactly the file that it checked, or none.
type walk struct {
	root    string
	data    fs.FileInfo // cairn's data folder, nil if there is none
	at      []*os.Root  // the directory itself and the directories below it on the path
	names   []string    // the remaining path elements
	links   int
	pending []*os.Root // to be closed
}

const maxLinks = 40

func openBelow(o *mail.Kernel, root, name string) (*os.File, error) {
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	w := &walk{root: root, at: []*os.Root{top}, names: parts(name), pending: []*os.Root{top}}
	defer w.close()
	if o.Config.DataFolder != "" {
		if w.data, err = os.Stat(o.Config.DataFolder); err != nil {
			w.data = nil // it is missing or unreadable
		}
	}
	if itself, err := top.Stat("."); err != nil || w.isBarred(top, itself) {
		return nil, errors.Join(err, errBarred)
	}
	for len(w.names) > 0 {
		f, err := w.step()
		if f != nil || err != nil {
			return f, err
		}
	}
	return nil, errNoFile
}

func (w *walk) close() {
	for _, r := range w.pending {
		_ = r.Close() // it was only read
	}
}

// parts returns the elements of a path, without "." and empty ones.
func parts(path string) (names []string) {
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == filepath.Separator }) {
		if name != "." {
			names = append(names, name)
		}
	}
	return names
}

// step resolves the next path element. It returns the file once the path ends, else nil.
func (w *walk) step() (*os.File, error) {
	name := w.names[0]
	w.names = w.names[1:]
	if name == ".." { // from a link
		if len(w.at) == 1 {
			return nil, errBarred
		}
		w.at = w.at[:len(w.at)-1]
		return nil, nil
	}
	if strings.EqualFold(strings.TrimRight(name, ". "), ".git") {
		return nil, errBarred
	}
	in := w.at[len(w.at)-1]
	seen, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	if w.isBarred(in, seen) {
		return nil, errBarred
	}
	switch {
	case seen.Mode()&fs.ModeSymlink != 0:
		return nil, w.follow(in, name)
	case seen.IsDir():
		return nil, w.enter(in, name, seen)
	case len(w.names) > 0 || !seen.Mode().IsRegular():
		return nil, errNoFile
	}
	f, err := in.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if opened, err := f.Stat(); err != nil || !os.SameFile(seen, opened) {
		return nil, errors.Join(errNoFile, f.Close())
	}
	return f, nil
}

func (w *walk) enter(in *os.Root, name string, seen fs.FileInfo) error {
	next, err := in.OpenRoot(name)
	if err != nil {
		return err
	}
	w.pending = append(w.pending, next)
	opened, err := next.Stat(".")
	if err != nil {
		return err
	}
	if !os.SameFile(seen, opened) {
		return errBarred
	}
	w.at = append(w.at, next)
	return nil
}

// follow replaces a link by its target in the remaining path elements.
func (w *walk) follow(in *os.Root, name string) error {
	to, err := in.Readlink(name)
	if err != nil {
		return err
	}
	if w.links++; w.links > maxLinks {
		return errNoFile
	}
	if filepath.IsAbs(to) {
		rest, err := filepath.Rel(w.root, to)
		if err != nil || !filepath.IsLocal(rest) {
			return errBarred
		}
		to, w.at = rest, w.at[:1]
	}
	w.names = append(parts(to), w.names...)
	return nil
}

// isBarred reports whether a file is cairn's data folder or Git's, under any name in the file
// system.
func (w *walk) isBarred(in *os.Root, seen fs.FileInfo) bool {
	if w.data != nil && os.SameFile(seen, w.data) {
		return true
	}
	git, err := in.Lstat(".git")
	return err == nil && os.SameFile(seen, git)
}
