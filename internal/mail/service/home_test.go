package service

import (
	"context"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/project"
	"cairn/internal/store"
)

// rendered returns the commit lines of the whole log, and the files by path.
func (y *yard) rendered() (ops []string, files map[string]string) {
	y.Helper()
	files = map[string]string{}
	pages, err := documents.RenderedFiles{}, error(nil)
	err = y.Store.Read(y.Context(), func(ctx context.Context, tx *store.Tx) error {
		changes, err := tx.Changes(ctx, 0, 10_000)
		if err == nil {
			pages, err = documents.Render(ctx, tx, changes)
		}
		return err
	})
	if err != nil || len(pages.Refused) > 0 {
		y.Fatal(err, pages.Refused)
	}
	for _, f := range pages.Files {
		files[f.Path] = string(f.Content)
	}
	return pages.Ops, files
}

// archive returns the archive of a yard with one project.
func (y *yard) archive(t *testing.T) documents.Folder {
	t.Helper()
	_, files := y.rendered()
	return documents.Folder{Name: "w-app", Paths: slices.Sorted(maps.Keys(files)), Read: func(_ context.Context, path string) ([]byte, error) {
		text, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}}
}

// reindexed imports the archive of another device.
func (y *yard) reindexed(t *testing.T, f documents.Folder) (documents.Reindexed, string) {
	t.Helper()
	r := documents.NewReindexer(y.Store, mail.Archive{}, false)
	if err := r.Add(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	return mailtest.Must(r.Finish(t.Context(), nil))(t), r.ProjectID(f.Name)
}

// device returns a store with one repository named tool, which has a remote and an agent. Its
// numbers start above the given one, so they are free in other stores.
func device(t *testing.T, above int64, remote, agent string) (y *yard, root string) {
	t.Helper()
	y = newYard(t, mail.Config{})
	err := y.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return documents.RaiseNumbers(ctx, tx, map[string]int64{"projects": above, "agents": above, "messages": above, "reservations": above})
	})
	if err != nil {
		t.Fatal(err)
	}
	root = y.repo("tool")
	if remote != "" {
		y.git(root, "remote", "add", "origin", remote)
	}
	y.register(root, agent)
	return y, root
}

func (y *yard) names(key string) (names []string) {
	y.Helper()
	for _, a := range mailtest.Must(y.ListAgents(y.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: key}))(y) {
		names = append(names, a.Name)
	}
	return names
}

func TestArchivesOfDifferentRepositoriesOfOneNameAreNotJoined(t *testing.T) {
	t.Parallel()
	for name, remotes := range map[string][2]string{
		"two remotes":          {"https://example.org/red/tool", "https://example.org/blue/tool"},
		"a remote and none":    {"https://example.org/red/tool", ""},
		"none and a remote":    {"", "https://example.org/blue/tool"},
		"neither has a remote": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, root := device(t, 10, remotes[0], "RedFox")
			into, own := device(t, 0, remotes[1], "BlueLake")
			theirs := from.ensure(root)
			out, id := into.reindexed(t, from.archive(t))
			mailtest.Want(t, "conflicts", len(out.Conflicts), 0)
			mailtest.Want(t, "agents of the own repository", strings.Join(into.names(own), " "), "BlueLake")
			mailtest.Want(t, "agents of the other one", strings.Join(into.names(theirs.UID), " "), "RedFox")
			mailtest.Want(t, "id of the other one", id, "tool-"+theirs.UID[:6])
			if remotes[0] != "" {
				clone := into.repo("clone")
				into.git(clone, "remote", "add", "origin", "git@example.org:red/tool")
				mailtest.Want(t, "a clone of the other one finds it", strings.Join(into.names(clone), " "), "RedFox")
				into.register(clone, "GoldBear")
				mailtest.Want(t, "and stays in it", strings.Join(into.names(theirs.UID), " "), "GoldBear RedFox")
			}
		})
	}
}

func TestAnArchiveOfTheSameRemoteJoinsItsProjectUnderAnotherUID(t *testing.T) {
	t.Parallel()
	const remote = "https://example.org/acme/tool"
	from, root := device(t, 10, remote, "RedFox")
	into := newYard(t, mail.Config{})
	own := into.repo("otherwise")
	into.git(own, "remote", "add", "origin", "git@example.org:acme/tool.git")
	into.register(own, "BlueLake")
	f := from.archive(t)
	uid, read := from.ensure(root).UID, f.Read
	f.Read = func(ctx context.Context, path string) ([]byte, error) { // an archive of an older version
		text, err := read(ctx, path)
		return []byte(strings.ReplaceAll(string(text), uid, "00112233445566778899")), err
	}
	for range 2 {
		out, id := into.reindexed(t, f)
		mailtest.Want(t, "conflicts", len(out.Conflicts), 0)
		mailtest.Want(t, "id", id, "otherwise")
	}
	mailtest.Want(t, "agents", strings.Join(into.names(own), " "), "BlueLake RedFox")
	var projects int
	into.query(&projects, "SELECT count(*) FROM mail_projects")
	mailtest.Want(t, "projects of mail", projects, 1)
}

func TestADirectoryOfAnArchiveIsNotTheRepositoryAroundIt(t *testing.T) {
	t.Parallel()
	const remote = "https://example.org/acme/tool"
	from := newYard(t, mail.Config{})
	root := from.repo("tool")
	from.git(root, "remote", "add", "origin", remote)
	part := from.mkdir(root + "/part")
	from.ensureAs(part, mail.ModeDir)
	from.register(part, "RedFox")
	into, own := device(t, 10, remote, "BlueLake")
	into.reindexed(t, from.archive(t))
	mailtest.Want(t, "agents of the repository", strings.Join(into.names(own), " "), "BlueLake")
}

func TestMailThatIsStoredWithoutAPlaceGoesToItsRepository(t *testing.T) {
	t.Parallel()
	y, root := device(t, 0, "https://example.org/acme/Tool", "BlueLake")
	p := y.ensure(root)
	err := y.Store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		row, err := project.Ensure(ctx, tx, "tool-abc123") // older versions named the second of two repositories like this
		if err == nil {
			_, err = tx.Exec(ctx, "UPDATE mail_projects SET project_key = ?, normalized_remote = 'example.org/acme/tool'", row.Key)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mailtest.Want(t, "agents for a read", strings.Join(y.names(root), " "), "BlueLake")
	got := y.ensure(root)
	mailtest.Want(t, "number", got.ID, p.ID)
	mailtest.Want(t, "row", y.sharedUID(p.ID), y.row(root).UID)
	other := y.repo("clone")
	y.git(other, "remote", "add", "origin", "git@example.org:acme/Tool.git")
	mailtest.Want(t, "agents for a clone", strings.Join(y.names(other), " "), "BlueLake")
	another := y.repo("another")
	y.git(another, "remote", "add", "origin", "git@example.org:other/Tool.git")
	if y.ensure(another).ID == p.ID {
		t.Errorf("another repository has its mail")
	}
}
