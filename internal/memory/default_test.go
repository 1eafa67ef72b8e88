package memory

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	return must(project.Locate(dir, home))(t)
}

// writeAt adds an entry to the default memory of a location; readAt lists the entries there.
func (d *desk) writeAt(p project.Location, text string) {
	d.Helper()
	if _, _, err := d.AddEntry(d.Context(), Caller{Place: p}, NewEntry{MemoryID: DefaultMemory, RawEntry: text}); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) readAt(p project.Location) string {
	d.Helper()
	var out []string
	for _, e := range must(d.ListEntries(d.Context(), Caller{Place: p}, ListArgs{MemoryID: DefaultMemory, Limit: 50}))(d).Entries {
		out = append(out, e.RawEntry)
	}
	return strings.Join(out, " ")
}

func TestADefaultMemoryBelongsToTheKeyOfItsProject(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	places := map[string]project.Location{
		"a":      repositoryIn(t, "tool", "https://example.com/a/tool.git"),
		"b":      repositoryIn(t, "tool", "https://example.com/b/tool.git"),
		"none":   repositoryIn(t, "tool", ""),
		"folder": placeIn(t, "tool"),
	}
	for name, p := range places {
		want(t, name+" before its first write", d.readAt(p), "")
		d.writeAt(p, name)
	}
	for name, p := range places {
		want(t, name, d.readAt(p), name)
	}
	clone := repositoryIn(t, "renamed", "git@example.com:a/tool")
	want(t, "a clone that was never seen", d.readAt(clone), "a")
	d.writeAt(clone, "clone")
	want(t, "the first, then", d.readAt(places["a"]), "clone a")
}

func TestADefaultMemoryStaysWhenItsProjectGetsARemote(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := repositoryIn(t, "tool", "")
	d.writeAt(p, "before")
	var memory, doc string
	d.query(&doc, `SELECT doc FROM change_log WHERE kind = 'memory' ORDER BY seq DESC LIMIT 1`)
	wantNot(t, "a path says nothing to other devices", doc, "projectUids")
	d.query(&memory, `SELECT memory_id FROM memories WHERE project_key IS NOT NULL`)
	config := filepath.Join(p.Identity, "config")
	if err := os.WriteFile(config, []byte("[remote \"origin\"]\n\turl = https://example.com/a/tool\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = must(project.Locate(p.Root, p.Home))(t)
	if err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		_, err := project.Resolve(ctx, tx, p)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d.writeAt(p, "after")
	}
	want(t, "its entries", d.readAt(p), "after after before")
	want(t, "its memory", must(d.Memory(t.Context(), Caller{Place: p}, DefaultMemory))(t).MemoryID, memory)
	var uid string
	var announced int
	d.query(&uid, `SELECT uid FROM projects`)
	d.query(&announced, `SELECT count(*) FROM change_log WHERE kind = 'memory' AND doc ->> '$.projectUids[0]' = '`+uid+`'`)
	want(t, "the new uid is announced once", announced, 1)
	d.sql(`UPDATE memories SET project_key = NULL WHERE memory_id = ?`, memory) // as after a salvage
	want(t, "without its link", d.readAt(p), "after after before")
}

func TestAProjectOfAnEarlierReleaseKeepsTheMemoryThatItFoundByItsTitle(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.writeAt(repositoryIn(t, "unrelated", ""), "unrelated")
	old := repositoryIn(t, "my.tool", "https://example.com/a/my.tool")
	d.writeAt(old, "from another device")
	// The row that the previous release has for a pulled memory.
	d.sql(`UPDATE memories SET project_key = NULL, project_uid = NULL WHERE project_key = (SELECT key FROM projects WHERE id = 'my.tool')`)
	d.sql(`UPDATE memory_vaults SET title = ? WHERE title LIKE 'my-tool-%'`, titleOf("my.tool"))
	d.sql(`INSERT INTO store_meta (name, value) SELECT 'memory.titled', max(key) FROM projects`)
	newer := repositoryIn(t, "my.tool", "https://example.com/b/my.tool")
	want(t, "a repository of that name that is new", d.readAt(newer), "")
	d.writeAt(newer, "new")
	want(t, "the old one", d.readAt(old), "from another device")
	d.writeAt(old, "more")
	want(t, "the old one, then", d.readAt(old), "more from another device")
	want(t, "the new one, then", d.readAt(newer), "new")
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
			d := newDesk(t)
			from, into := repositoryIn(t, "from", "https://example.com/a/from"), repositoryIn(t, "into", "https://example.com/a/into")
			var memories []Memory
			for _, p := range []struct {
				project.Location
				text string
			}{{from, test.from}, {into, test.into}} {
				err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
					_, err := project.Resolve(ctx, tx, p.Location)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				if p.text != "" {
					d.writeAt(p.Location, p.text)
					memories = append(memories, must(d.Memory(t.Context(), Caller{Place: p.Location}, DefaultMemory))(t))
				}
			}
			for range 2 {
				err := d.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
					return project.Merge(ctx, tx, "from", "into", MoveRows)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			want(t, "from", d.readAt(from), test.merged)
			want(t, "into", d.readAt(into), test.merged)
			for _, m := range memories {
				list := must(d.Memories(t.Context(), Caller{}, m.VaultID))(t)
				want(t, "in the list of its vault", list.Memories[0].MemoryID, m.MemoryID)
				page := must(d.ListEntries(t.Context(), Caller{}, ListArgs{MemoryID: m.MemoryID}))(t)
				want(t, "its entries", page.Count, 1)
			}
			d.writeAt(from, "later")
			want(t, "a later entry", d.readAt(into), "later "+test.merged)
		})
	}
}
