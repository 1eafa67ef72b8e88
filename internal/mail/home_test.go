package mail

import (
	"context"
	"strings"
	"testing"

	"cairn/internal/project"
	"cairn/internal/store"
)

// archive is the archive of a yard that has one project.
func (y *yard) archive(t *testing.T) Folder {
	t.Helper()
	_, files := rendered(t, y.store)
	return folder(files)
}

// reindexed takes the archive of another device over.
func (y *yard) reindexed(t *testing.T, f Folder) (Reindexed, string) {
	t.Helper()
	r := NewReindexer(y.store, Archive{}, false)
	if err := r.Add(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	return must(r.Finish(t.Context(), nil))(t), r.ProjectID(f.Name)
}

// device is a store with one repository, called tool, with a remote and an agent. Its
// numbers begin above others, so that they are free elsewhere.
func device(t *testing.T, above int64, remote, agent string) (y *yard, root string) {
	t.Helper()
	y = newYard(t, Config{})
	err := y.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		return RaiseNumbers(ctx, tx, map[string]int64{"projects": above, "agents": above, "messages": above, "reservations": above})
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
	for _, a := range must(y.ListAgents(y.Context(), Caller{}, ListAgentsArgs{ProjectKey: key}))(y) {
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
			want(t, "conflicts", len(out.Conflicts), 0)
			want(t, "agents of the own repository", strings.Join(into.names(own), " "), "BlueLake")
			want(t, "agents of the other one", strings.Join(into.names(theirs.UID), " "), "RedFox")
			want(t, "id of the other one", id, "tool-"+theirs.UID[:6])
			if remotes[0] != "" {
				clone := into.repo("clone")
				into.git(clone, "remote", "add", "origin", "git@example.org:red/tool")
				want(t, "a clone of the other one finds it", strings.Join(into.names(clone), " "), "RedFox")
				into.register(clone, "GoldBear")
				want(t, "and stays in it", strings.Join(into.names(theirs.UID), " "), "GoldBear RedFox")
			}
		})
	}
}

func TestAnArchiveOfTheSameRemoteJoinsItsProjectUnderAnotherUID(t *testing.T) {
	t.Parallel()
	const remote = "https://example.org/acme/tool"
	from, root := device(t, 10, remote, "RedFox")
	into := newYard(t, Config{})
	own := into.repo("otherwise")
	into.git(own, "remote", "add", "origin", "git@example.org:acme/tool.git")
	into.register(own, "BlueLake")
	f := from.archive(t)
	uid, read := from.ensure(root).UID, f.Read
	f.Read = func(ctx context.Context, path string) ([]byte, error) { // as an older version made it
		text, err := read(ctx, path)
		return []byte(strings.ReplaceAll(string(text), uid, "00112233445566778899")), err
	}
	for range 2 {
		out, id := into.reindexed(t, f)
		want(t, "conflicts", len(out.Conflicts), 0)
		want(t, "id", id, "otherwise")
	}
	want(t, "agents", strings.Join(into.names(own), " "), "BlueLake RedFox")
	var projects int
	into.query(&projects, "SELECT count(*) FROM mail_projects")
	want(t, "projects of mail", projects, 1)
}

func TestADirectoryOfAnArchiveIsNotTheRepositoryAroundIt(t *testing.T) {
	t.Parallel()
	const remote = "https://example.org/acme/tool"
	from := newYard(t, Config{})
	root := from.repo("tool")
	from.git(root, "remote", "add", "origin", remote)
	part := from.mkdir(root + "/part")
	from.ensureAs(part, modeDir)
	from.register(part, "RedFox")
	into, own := device(t, 10, remote, "BlueLake")
	into.reindexed(t, from.archive(t))
	want(t, "agents of the repository", strings.Join(into.names(own), " "), "BlueLake")
}

func TestMailThatIsStoredWithoutAPlaceGoesToItsRepository(t *testing.T) {
	t.Parallel()
	y, root := device(t, 0, "https://example.org/acme/Tool", "BlueLake")
	p := y.ensure(root)
	err := y.store.Write(t.Context(), store.Full, func(ctx context.Context, tx *store.Tx) error {
		row, err := project.Ensure(ctx, tx, "tool-abc123") // as an older version named the second of two repositories
		if err == nil {
			_, err = tx.Exec(ctx, "UPDATE mail_projects SET project_key = ?, normalized_remote = 'example.org/acme/tool'", row.Key)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "agents for a read", strings.Join(y.names(root), " "), "BlueLake")
	got := y.ensure(root)
	want(t, "number", got.ID, p.ID)
	want(t, "row", y.sharedUID(p.ID), y.row(root).UID)
	other := y.repo("clone")
	y.git(other, "remote", "add", "origin", "git@example.org:acme/Tool.git")
	want(t, "agents for a clone", strings.Join(y.names(other), " "), "BlueLake")
	another := y.repo("another")
	y.git(another, "remote", "add", "origin", "git@example.org:other/Tool.git")
	if y.ensure(another).ID == p.ID {
		t.Errorf("another repository has its mail")
	}
}
