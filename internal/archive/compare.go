package archive

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"cairn/internal/archive/repository"
	"cairn/internal/fault"
)

// folder is the present state of a project's archive: the work tree and the files in
// main. All or parts of it may be missing.
type folder struct {
	repo *repository.Repository
	root *os.Root          // nil if the folder does not exist
	tree map[string]string // blobs of main by path
	lost map[string]bool   // blobs of main that the repository lacks
}

// peek reads an archive without any change to it. Errors: Unavailable with CodeNoGit or
// CodeGit. A missing folder or repository counts as empty.
func peek(ctx context.Context, dir string) (*folder, error) {
	repo, err := repository.At(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{repo: repo, tree: map[string]string{}}
	if f.root, err = os.OpenRoot(repo.Dir()); errors.Is(err, fs.ErrNotExist) {
		return f, nil
	} else if err != nil {
		return nil, f.repo.Gone()
	}
	if err := f.readMain(ctx); err != nil && !fault.HasCode(err, repository.CodeGone) {
		f.close()
		return nil, err
	}
	return f, nil
}

// readMain reads the files in main.
func (f *folder) readMain(ctx context.Context) (err error) {
	if f.tree, err = f.repo.Tree(ctx); err != nil {
		f.tree = map[string]string{}
		return err
	}
	f.lost, err = f.repo.Missing(ctx, f.tree)
	return err
}

func (f *folder) close() {
	if f.root != nil {
		_ = f.root.Close()
	}
	_ = f.repo.Close()
}

// state is the result of comparing a file.
type state uint8

const (
	absent state = iota
	differs
	same
)

// file compares a file of the work tree.
func (f *folder) file(want repository.File) state {
	if f.root == nil {
		return absent
	}
	info, err := f.root.Lstat(want.Path)
	switch {
	case err != nil:
		return absent
	case !info.Mode().IsRegular() || info.Size() != int64(len(want.Content)):
		return differs
	}
	if got, err := f.root.ReadFile(want.Path); err != nil || !bytes.Equal(got, want.Content) {
		return differs
	}
	return same
}

// committed compares a file with main.
func (f *folder) committed(want repository.File) state {
	hash, ok := f.tree[want.Path]
	switch {
	case !ok || f.lost[hash]:
		return absent
	case hash != repository.BlobHash(want.Content):
		return differs
	}
	return same
}

// paths returns the paths of all files in main and in the work tree, except cairn's own.
func (f *folder) paths() (map[string]bool, error) {
	all := map[string]bool{}
	for path := range f.tree {
		all[path] = true
	}
	if f.root == nil {
		return all, nil
	}
	err := fs.WalkDir(f.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.Type().IsRegular():
			all[path] = true
		}
		return nil
	})
	delete(all, repository.AttributesFile)
	return all, err
}

// read returns the content of a file from main, else from the work tree.
func (f *folder) read(ctx context.Context, path string) ([]byte, error) {
	if hash := f.tree[path]; hash != "" && !f.lost[hash] {
		content, found, err := f.repo.Blob(ctx, hash)
		if err == nil && found || ctx.Err() != nil {
			return content, ctx.Err()
		}
	}
	if f.root == nil {
		return nil, fs.ErrNotExist
	}
	return f.root.ReadFile(path)
}
