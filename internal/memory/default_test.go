package memory_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/vaults"
	"cairn/internal/project"
	"cairn/internal/store"
)

// repositoryIn creates a repository for the test, with a remote unless that is "".
func repositoryIn(t testing.TB, name, remote string) project.Location {
	t.Helper()
	home := t.TempDir()
	dir := filepath.Join(home, name)
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	config := ""
	if remote != "" {
		config = "[remote \"origin\"]\n\turl = " + remote + "\n"
	}
	for file, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": config} {
		if err := os.WriteFile(filepath.Join(dir, ".git", file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return memorytest.Must(project.Locate(dir, home))(t)
}

// writeAt adds an entry to the default memory of a location; readAt lists the entries there.
func writeAt(d *memorytest.Desk, p project.Location, text string) {
	d.Helper()
	if _, _, err := d.AddEntry(d.Context(), memory.Caller{Place: p}, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: text}); err != nil {
		d.Fatal(err)
	}
}

func readAt(d *memorytest.Desk, p project.Location) string {
	d.Helper()
	var out []string
	for _, e := range memorytest.Must(d.ListEntries(d.Context(), memory.Caller{Place: p}, entries.ListArgs{MemoryID: memory.DefaultMemory, Limit: 50}))(d).Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

func TestADefaultMemoryBelongsToTheKeyOfItsProject(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	places := map[string]project.Location{
		"a":      repositoryIn(t, "tool", "https://example.com/a/tool.git"),
		"b":      repositoryIn(t, "tool", "https://example.com/b/tool.git"),
		"none":   repositoryIn(t, "tool", ""),
		"folder": memorytest.PlaceIn(t, "tool"),
	}
	for name, p := range places {
		memorytest.Want(t, name+" before its first write", readAt(d, p), "")
		writeAt(d, p, name)
	}
	for name, p := range places {
		memorytest.Want(t, name, readAt(d, p), name)
	}
	clone := repositoryIn(t, "renamed", "git@example.com:a/tool")
	memorytest.Want(t, "a clone that was never seen", readAt(d, clone), "a")
	writeAt(d, clone, "clone")
	memorytest.Want(t, "the first, then", readAt(d, places["a"]), "clone a")
}

func TestADefaultMemoryStaysWhenItsProjectGetsARemote(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	p := repositoryIn(t, "tool", "")
	writeAt(d, p, "before")
	var memoryID, doc string
	d.Query(&doc, `SELECT doc FROM change_log WHERE kind = 'memory' ORDER BY seq DESC LIMIT 1`)
	memorytest.WantNot(t, "a path says nothing to other devices", doc, "projectUids")
	d.Query(&memoryID, `SELECT memory_id FROM memories WHERE project_key IS NOT NULL`)
	config := filepath.Join(p.Identity, "config")
	if err := os.WriteFile(config, []byte("[remote \"origin\"]\n\turl = https://example.com/a/tool\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = memorytest.Must(project.Locate(p.Root, p.Home))(t)
	if err := d.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := project.Resolve(ctx, tx, p)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		writeAt(d, p, "after")
	}
	memorytest.Want(t, "its entries", readAt(d, p), "after after before")
	memorytest.Want(t, "its memory", memorytest.Must(d.Memory(t.Context(), memory.Caller{Place: p}, memory.DefaultMemory))(t).MemoryID, memoryID)
	var uid string
	var announced int
	d.Query(&uid, `SELECT uid FROM projects`)
	d.Query(&announced, `SELECT count(*) FROM change_log WHERE kind = 'memory' AND doc ->> '$.projectUids[0]' = '`+uid+`'`)
	memorytest.Want(t, "the new uid is announced once", announced, 1)
	d.Exec(`UPDATE memories SET project_key = NULL WHERE memory_id = ?`, memoryID) // as after a salvage
	memorytest.Want(t, "without its link", readAt(d, p), "after after before")
}

func TestAProjectOfAnEarlierReleaseKeepsTheMemoryThatItFoundByItsTitle(t *testing.T) {
	t.Parallel()
	d := memorytest.NewDesk(t)
	writeAt(d, repositoryIn(t, "unrelated", ""), "unrelated")
	old := repositoryIn(t, "my.tool", "https://example.com/a/my.tool")
	writeAt(d, old, "from another device")
	// The row that the previous release has for a pulled memory.
	d.Exec(`UPDATE memories SET project_key = NULL, project_uid = NULL WHERE project_key = (SELECT key FROM projects WHERE id = 'my.tool')`)
	d.Exec(`UPDATE memory_vaults SET title = ? WHERE title LIKE 'my-tool-%'`, memory.TitleOf("my.tool"))
	d.Exec(`INSERT INTO store_meta (name, value) SELECT 'memory.titled', max(key) FROM projects`)
	newer := repositoryIn(t, "my.tool", "https://example.com/b/my.tool")
	memorytest.Want(t, "a repository of that name that is new", readAt(d, newer), "")
	writeAt(d, newer, "new")
	memorytest.Want(t, "the old one", readAt(d, old), "from another device")
	writeAt(d, old, "more")
	memorytest.Want(t, "the old one, then", readAt(d, old), "more from another device")
	memorytest.Want(t, "the new one, then", readAt(d, newer), "new")
}

func TestAMergeOfProjectsKeepsBothDefaultMemories(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ from, into, merged string }{
		"only the first has one":  {from: "f", merged: "f"},
		"only the second has one": {into: "i", merged: "i"},
		"both":                    {"f", "i", "i"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := memorytest.NewDesk(t)
			from, into := repositoryIn(t, "from", "https://example.com/a/from"), repositoryIn(t, "into", "https://example.com/a/into")
			var memories []memory.Memory
			for _, p := range []struct {
				project.Location
				text string
			}{{from, test.from}, {into, test.into}} {
				err := d.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
					_, err := project.Resolve(ctx, tx, p.Location)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				if p.text != "" {
					writeAt(d, p.Location, p.text)
					memories = append(memories, memorytest.Must(d.Memory(t.Context(), memory.Caller{Place: p.Location}, memory.DefaultMemory))(t))
				}
			}
			for range 2 {
				err := d.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
					return project.Merge(ctx, tx, "from", "into", vaults.MoveRows)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			memorytest.Want(t, "from", readAt(d, from), test.merged)
			memorytest.Want(t, "into", readAt(d, into), test.merged)
			for _, m := range memories {
				list := memorytest.Must(d.Memories(t.Context(), memory.Caller{}, m.VaultID))(t)
				memorytest.Want(t, "in the list of its vault", list.Memories[0].MemoryID, m.MemoryID)
				page := memorytest.Must(d.ListEntries(t.Context(), memory.Caller{}, entries.ListArgs{MemoryID: m.MemoryID}))(t)
				memorytest.Want(t, "its entries", page.Count, 1)
			}
			writeAt(d, from, "later")
			memorytest.Want(t, "a later entry", readAt(d, into), "later "+test.merged)
		})
	}
}
