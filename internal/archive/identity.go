package archive

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/wholefile"
)

// identityFile is the file in an archive that identifies its project. It is in the git
// directory because it is not content: it changes with the project, without a commit.
const identityFile = ".git/cairn-project.json"

const maxIdentity = 64 << 10

// identityNow returns the identity of the project, nil without one.
func (l *projectWorker) identityNow(ctx context.Context) (text []byte, err error) {
	if l.Identity == nil {
		return nil, nil
	}
	err = l.Store.Read(ctx, func(ctx context.Context, tx *store.Tx) (err error) {
		text, err = l.Identity(ctx, tx, l.project)
		return err
	})
	return text, err
}

// makeRoom renames an archive of another project that occupies this project's folder. A
// lost store archived it; a reindex still finds it.
func (l *projectWorker) makeRoom(ctx context.Context) error {
	old, err := os.ReadFile(filepath.Join(l.dir, filepath.FromSlash(identityFile)))
	if err != nil || l.Stranger == nil {
		return nil // there is no other archive, or its project is unknown
	}
	now, err := l.identityNow(ctx)
	if err != nil || len(now) == 0 {
		return err
	}
	aside := l.Stranger(old, now)
	if aside == "" {
		return nil
	}
	to := l.folder(aside)
	for n := 2; repository.Exists(to); n++ {
		to = l.folder(aside) + "-" + strconv.Itoa(n)
	}
	if err := os.Rename(l.dir, to); err != nil {
		return fault.Wrap(err, fault.Unavailable, repository.CodeGone, "archive "+l.dir+" belongs to another repository and cannot be renamed: "+repository.Reason(err)).
			WithHint("rename the folder, then run `cairn archive sync`")
	}
	l.Log.Warn("renamed the archive of another repository, which had this project's name", "archive", l.dir, "to", to)
	return nil
}

// keepIdentity writes the identity of the project next to its archive if it changed. A
// failure does not stop archiving.
func (l *projectWorker) keepIdentity(ctx context.Context) {
	text, err := l.identityNow(ctx)
	if err == nil && len(text) > 0 {
		path := filepath.Join(l.dir, filepath.FromSlash(identityFile))
		if old, unread := os.ReadFile(path); unread != nil || !bytes.Equal(old, text) {
			err = wholefile.Write(path, text, 0o600)
		}
	}
	if err != nil && ctx.Err() == nil {
		l.Log.Warn("cannot write the identity of an archive", "archive", l.dir, "error", err)
	}
}

// Move renames the folder of an archive to that of a project, unless the project has
// one. It reports whether it did.
func (a *Archiver) Move(folder, project string) bool {
	to := a.folder(project)
	if filepath.Base(to) == folder || repository.Exists(to) {
		return false
	}
	return os.Rename(filepath.Join(a.Dir, folder), to) == nil
}

// identity reads the identity of an archive's folder, nil without one.
func (f *folder) identity() []byte {
	info, err := f.root.Lstat(filepath.FromSlash(identityFile))
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxIdentity {
		return nil
	}
	file, err := f.root.Open(filepath.FromSlash(identityFile))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxIdentity))
	if err != nil {
		return nil
	}
	return text
}
