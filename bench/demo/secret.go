package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// findKey searches every file of the data directory for the pasted key and shows its
// replacement in the store. It returns an error if it finds the key.
func (d *demo) findKey(ctx context.Context, key string) error {
	d.heading("A key was pasted into session 3; here is what became of it")
	files, size, err := searchFiles(d.home.data, key)
	if err != nil {
		return err
	}
	d.say("It went through the hook %d times: in a prompt, in commands and in an error message. Searched every byte of %s "+
		"(%s, %d kB): neither the key nor any %d characters of it are there. Stored instead:", d.keySent, d.home.short(d.home.data), strings.Join(files, ", "), size/1000, keyPart)
	out, err := d.home.output(ctx, d.home.dir, "search", "redacted", "--full")
	if err != nil {
		return err
	}
	var rows []row
	if err := json.Unmarshal(out, &rows); err != nil {
		return fmt.Errorf("cairn search: %w", err)
	}
	if len(rows) == 0 {
		return errors.New("nothing is marked as redacted, though a key was pasted")
	}
	d.blank()
	for _, r := range rows {
		d.line("  %s %s", fmt.Sprintf("#%-4d", r.ID), r.ObsType)
		for _, l := range wrap(d.home.short(r.Content), columns-4) {
			d.line("    %s", strings.ReplaceAll(l, "[REDACTED]", d.red("[REDACTED]")))
		}
	}
	return nil
}

// keyPart is the number of the key's characters that count as a leak.
const keyPart = 8

// searchFiles reads every file below dir and returns their names and total size. It returns an
// error if a file contains a part of the key, ignoring case.
func searchFiles(dir, key string) (names []string, size int, err error) {
	secret := bytes.ToLower([]byte(key[strings.LastIndexByte(key, '_')+1:]))
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		data = bytes.ToLower(data)
		for i := 0; i+keyPart <= len(secret); i++ {
			if at := bytes.Index(data, secret[i:i+keyPart]); at >= 0 {
				return fmt.Errorf("a part of the pasted key stands in %s at byte %d: please report this", e.Name(), at)
			}
		}
		names, size = append(names, e.Name()), size+len(data)
		return nil
	})
	if err == nil && size == 0 {
		err = fmt.Errorf("%s holds no data", dir)
	}
	return names, size, err
}
