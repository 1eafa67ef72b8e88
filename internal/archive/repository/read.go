package repository

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
)

// Tree returns the files in main: the blob's hash by path. A missing main has no files.
// Errors: Unavailable as for Open.
func (r *Repository) Tree(ctx context.Context) (map[string]string, error) {
	main, err := r.Head(ctx)
	if err != nil || main == "" {
		return map[string]string{}, err
	}
	out, err := r.git.run(ctx, "ls-tree", "-r", "-z", "--full-tree", main)
	if err != nil {
		return nil, err
	}
	tree := make(map[string]string, bytes.Count(out, []byte{0}))
	for entry := range strings.SplitSeq(string(out), "\x00") {
		what, path, _ := strings.Cut(entry, "\t") // mode, kind, hash
		if f := strings.Fields(what); len(f) == 3 && f[1] == "blob" {
			tree[path] = f[2]
		}
	}
	return tree, nil
}

// BlobHash returns the hash of a file's content in a tree.
func BlobHash(content []byte) string {
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", len(content))
	_, _ = h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// Blob returns the content of a blob; found is false if the repository lacks it. Errors:
// Unavailable as for Open.
func (r *Repository) Blob(ctx context.Context, name string) (content []byte, found bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.lookUp(ctx, name, func(_, kind string, b []byte) error {
		content, found = b, kind == "blob"
		return nil
	})
	return content, found, err
}

// HasFile reports whether main contains a file. Errors: Unavailable as for Open.
func (r *Repository) HasFile(ctx context.Context, path string) (bool, error) {
	_, found, err := r.Blob(ctx, mainRef+":"+path)
	return found, err
}

// Head returns the commit of main, "" if there is no main.
func (r *Repository) Head(ctx context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	main, err := r.main(ctx)
	return main.hash, err
}

// Contains reports whether main contains a commit, as its tip or as an ancestor. After
// the repository was replaced or main was reset it does not; then the caller must compare
// its files again (Tree). Errors: Unavailable as for Open.
func (r *Repository) Contains(ctx context.Context, hash string) (bool, error) {
	r.mu.Lock()
	_, ok, err := r.commitTree(ctx, hash)
	r.mu.Unlock()
	if err != nil || !ok {
		return false, err
	}
	_, err = r.git.run(ctx, "merge-base", "--is-ancestor", hash, mainRef)
	if exitCode(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// Fsck has git check every object. Errors: Unavailable as for Open, with git's complaint.
func (r *Repository) Fsck(ctx context.Context) error {
	_, err := r.git.run(ctx, "fsck", "--strict", "--full", "--no-dangling", "--no-progress")
	return err
}

// Missing returns the blobs of a tree that the repository lacks. Errors: Unavailable as for
// Open.
func (r *Repository) Missing(ctx context.Context, tree map[string]string) (map[string]bool, error) {
	var names strings.Builder
	for _, hash := range tree {
		names.WriteString(hash + "\n")
	}
	cmd := r.git.command(ctx, "cat-file", "--batch-check=%(objectname)")
	told := &bounded{left: maxTold}
	cmd.Stdin, cmd.Stderr = strings.NewReader(names.String()), told
	out, err := cmd.Output()
	if err != nil {
		return nil, r.git.refused(ctx, "cat-file", told.String(), err)
	}
	lost := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		if hash, missing := strings.CutSuffix(strings.TrimSpace(line), " missing"); missing {
			lost[hash] = true
		}
	}
	return lost, nil
}

// Gone returns an error if the folder is no longer a repository, else nil: Unavailable with
// CodeGone.
func (r *Repository) Gone() error { return r.git.gone() }
