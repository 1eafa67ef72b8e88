package archive

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/archive/repository"
)

// Archived is a project's folder as a reindex reads it: the files in main, and those in
// the work tree that main lacks.
type Archived struct {
	Name  string
	Paths []string // in order
	Read  func(ctx context.Context, path string) ([]byte, error)

	Identity []byte // result of Config.Identity for the project, nil if unknown
}

// Each calls do with every folder of the archive, by name, or with only one. It changes
// nothing. If a repository cannot be read, it uses the files in the work tree and calls
// bad with the reason. Errors: those of do, and of the archive's own folder.
func (a *Archiver) Each(ctx context.Context, folder string, do func(Archived) error, bad func(folder string, why error)) error {
	entries, err := os.ReadDir(a.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || folder != "" && e.Name() != folder {
			continue
		}
		if err := a.readFolder(ctx, e.Name(), do, bad); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// FolderOf returns the name of a project's folder.
func FolderOf(project string) string { return folderName(project) }

// ProjectOf returns the project of a folder name.
func ProjectOf(folder string) string {
	stem, rest, dotted := strings.Cut(folder, ".")
	bare, ok := strings.CutSuffix(stem, "-p")
	if dotted {
		bare += "."
	}
	if project := bare + rest; ok && folderName(project) == folder {
		return project
	}
	return folder
}

func (a *Archiver) readFolder(ctx context.Context, name string, do func(Archived) error, bad func(string, error)) error {
	dir := filepath.Join(a.Dir, name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		bad(name, err)
		return nil
	}
	repo, err := repository.At(dir)
	if err != nil {
		return errors.Join(err, root.Close())
	}
	f := &folder{repo: repo, root: root}
	defer f.close()
	if err := f.readMain(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		bad(name, err)
	}
	paths, err := f.paths()
	if err != nil {
		bad(name, err)
	}
	return do(Archived{Name: name, Paths: slices.Sorted(maps.Keys(paths)), Read: f.read, Identity: f.identity()})
}
