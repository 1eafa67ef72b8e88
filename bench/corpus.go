package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// realTranscripts unpacks the archives of --corpus outside the repository and returns the
// folder, or "" without archives.
func (b *bench) realTranscripts() (dir string, err error) {
	archives, err := filepath.Glob(b.corpus)
	if err != nil || len(archives) == 0 {
		return "", err
	}
	dir = filepath.Join(b.dir, "corpus")
	done := dir + ".complete"
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	for _, a := range archives {
		b.say("unpacking %s", filepath.Base(a))
		if err := unpack(a, dir); err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Base(a), err)
		}
	}
	return dir, os.WriteFile(done, nil, 0o600)
}

// unpack extracts the transcripts from a compressed archive. It skips all other files and paths
// outside dir.
func unpack(archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for entries := tar.NewReader(z); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filepath.FromSlash(strings.TrimPrefix(h.Name, "./"))
		if h.Typeflag != tar.TypeReg || !strings.HasSuffix(name, ".jsonl") || !filepath.IsLocal(name) {
			continue
		}
		if err := writeFile(filepath.Join(dir, name), entries); err != nil {
			return err
		}
	}
}

func writeFile(path string, from io.Reader) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, from)
	return err
}
