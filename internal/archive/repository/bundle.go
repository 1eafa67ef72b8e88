package repository

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cairn/internal/fault"
)

// packSettings make git write one history as one pack, independent of the present packs
// and loose objects.
var packSettings = [...]string{
	"-c", "pack.threads=1", "-c", "pack.window=10", "-c", "pack.depth=50", "-c", "pack.windowMemory=0", "-c", "pack.compression=6",
	"-c", "core.bigFileThreshold=512m", "-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false", "-c", "pack.useBitmaps=false",
	"-c", "pack.useSparse=false",
}

// Bundle writes the repository in a folder as a git bundle, which any git can clone: all
// branches and tags with their history. With one version of git, equal refs give equal
// bytes, however the objects are stored. It does not write to the repository and blocks
// no writer.
//
// Errors: CodeNoGit, CodeGone without a repository, CodeGit, those of w.
func Bundle(ctx context.Context, dir string, w io.Writer) error {
	g, err := reading(dir)
	if err != nil {
		return err
	}
	refs, err := g.run(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(refs), "\n"), "\n")
	if lines[0] == "" {
		return fault.Newf(fault.Unavailable, CodeGone, "archive %s holds no commit", dir).WithHint("run `cairn reconcile --rebuild`")
	}
	var hashes strings.Builder
	for _, l := range lines {
		hash, _, _ := strings.Cut(l, " ")
		hashes.WriteString(hash + "\n")
	}
	if _, err := fmt.Fprintf(w, "# v2 git bundle\n%s\n\n", strings.Join(lines, "\n")); err != nil {
		return err
	}
	cmd := g.command(ctx, slices.Concat(packSettings[:], []string{"pack-objects", "--stdout", "--quiet", "--revs", "--delta-base-offset",
		"--no-reuse-delta", "--no-reuse-object", "--threads=1"})...)
	told := &bounded{left: maxTold}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(hashes.String()), w, told
	if err := cmd.Run(); err != nil {
		return g.refused(ctx, "pack-objects", told.String(), err)
	}
	return nil
}

func reading(dir string) (git, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return git{}, err
	}
	if _, err := os.Stat(filepath.Join(abs, ".git", "HEAD")); err != nil {
		return git{}, fault.Wrap(err, fault.Unavailable, CodeGone, "archive "+abs+" is not a repository: "+Reason(err)).
			WithHint("run `cairn reconcile --rebuild`")
	}
	return git{program: "git", dir: abs}, nil
}

// Unbundle creates the repository of a bundle in an empty or missing folder and checks
// out its files. It verifies every object.
//
// Errors: CodeNoGit, CodeGit for a damaged bundle, those of the file system.
func Unbundle(ctx context.Context, dir, bundle string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if bundle, err = filepath.Abs(bundle); err != nil {
		return err
	}
	if err := os.MkdirAll(abs, 0o700); err != nil {
		return err
	}
	g := git{program: "git", dir: abs}
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main"},
		{"-c", "fetch.fsckObjects=true", "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-head-ok", bundle, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"},
		{"read-tree", "--reset", "-u", "refs/heads/main"},
	} {
		if _, err := g.run(ctx, args...); err != nil {
			return err
		}
	}
	r, err := Open(ctx, abs, "", 0)
	if err != nil {
		return err
	}
	return r.Close()
}
