//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cairn"
	"cairn/internal/store"
)

// prompts writes transcripts with one session each and returns the prompts in them.
func (h *home) prompts(folder string, files, each int) (contents []string) {
	h.t.Helper()
	err := os.MkdirAll(folder, 0o755)
	for i := range files {
		var b bytes.Buffer
		for n := range each {
			said := fmt.Sprintf("please look at part %d of file %d", n, i)
			contents = append(contents, said)
			fmt.Fprintf(&b, `{"type":"user","sessionId":"i%d","cwd":%q,"uuid":"u%d-%d","timestamp":"2026-01-01T%02d:%02d:00Z","message":{"role":"user","content":%q}}`+"\n",
				i, h.repo, i, n, n/60%24, n%60, said)
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, fmt.Sprintf("i%d.jsonl", i)), b.Bytes(), 0o600))
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return contents
}

// TestAnImportEndsOnASignal sends the signal while most files are still unread. The imported rows
// stay, and the next import adds the rest exactly once.
func TestAnImportEndsOnASignal(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		h := newHome(t)
		h.recorded(h.shell("t1", "make"))
		folder := filepath.Join(h.dir, "sessions")
		contents := h.prompts(folder, often(150, 60), 100)
		e := h.stoppedImport(signal, folder)
		if e.code != 1 || !strings.Contains(e.stderr, "stopped by a signal; what was imported stays") {
			t.Errorf("%v: exit %d, %s", signal, e.code, e.stderr)
		}
		stored := len(h.contents()) - 1
		if stored == 0 || stored >= len(contents) {
			t.Errorf("%v: %d of %d prompts are stored", signal, stored, len(contents))
		}
		t.Logf("%v: %d of %d prompts were stored", signal, stored, len(contents))
		h.cairn("import", folder)
		seen := h.contents()
		wantOnce(t, seen, contents)
		if len(seen) != len(contents)+1 {
			t.Errorf("%v: %d different contents", signal, len(seen))
		}
	}
}

// stoppedImport signals an import of a folder as soon as the import has stored a row.
func (h *home) stoppedImport(signal os.Signal, folder string) ending {
	h.t.Helper()
	cmd := h.command("import", folder)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the process state contains the result
		close(ended)
	}()
	h.opened(func(ctx context.Context, c *cairn.Cairn) error {
		s, err := c.Store(ctx)
		for imported := ""; err == nil && (imported == "" || imported == "0"); {
			select {
			case <-ended:
				return errors.New("the import ended before it stored anything")
			default:
			}
			err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
				return tx.Each(ctx, func(r *sql.Rows) (err error) {
					imported, err = rowText(r)
					return err
				}, `SELECT count(*) FROM prompts`)
			})
		}
		return errors.Join(err, cmd.Process.Signal(signal))
	})
	<-ended
	return ending{code: cmd.ProcessState.ExitCode(), stderr: stderr.String(), state: cmd.ProcessState}
}
