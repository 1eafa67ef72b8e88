package project_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/store/storetest"
)

// world is a store, a home directory and a folder for repositories.
type world struct {
	*testing.T
	store *store.Store
	home  string
	dir   string
	now   time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, home: filepath.Join(base, "people", "ann"), dir: filepath.Join(base, "work"), now: time.Unix(1_700_000_000, 0)}
	w.mkdir(w.home)
	w.mkdir(w.dir)
	w.store, err = store.Open(t.Context(), storetest.Config(store.Config{
		Path: filepath.Join(base, "data", "cairn.db"), Clock: func() time.Time { return w.now },
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		found, err := w.store.Check(context.Background())
		if err != nil || len(found) > 0 {
			t.Errorf("check: %v %v", found, err)
		}
		if err := w.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) mkdir(path string) string {
	w.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		w.Fatal(err)
	}
	return path
}

func (w *world) write(path, text string) string {
	w.Helper()
	w.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
	return path
}

func (w *world) rename(from, to string) {
	w.Helper()
	w.mkdir(filepath.Dir(to))
	if err := os.Rename(from, to); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(path string) {
	w.Helper()
	if err := os.RemoveAll(path); err != nil {
		w.Fatal(err)
	}
}

func (w *world) symlink(target, link string) {
	w.Helper()
	if err := os.Symlink(target, link); err != nil {
		w.Skipf("no symbolic links here: %v", err)
	}
}

// git runs the real program without the settings of this machine.
func (w *world) git(dir string, args ...string) {
	w.Helper()
	args = append([]string{
		"-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main",
		"-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false",
	}, args...)
	cmd := exec.CommandContext(w.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "HOME="+w.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.Fatalf("git %v: %v\n%s", args[10:], err, out)
	}
}

// repo creates a repository with one commit.
func (w *world) repo(path string) string {
	w.Helper()
	w.mkdir(path)
	w.git(path, "init", "-q")
	w.write(filepath.Join(path, "README.md"), "hello\n")
	w.git(path, "add", "-A")
	w.git(path, "commit", "-q", "-m", "first")
	return path
}

func (w *world) clone(from, to string) string {
	w.Helper()
	w.git(w.dir, "clone", "-q", from, to)
	return to
}

func (w *world) path(parts ...string) string {
	return filepath.Join(append([]string{w.dir}, parts...)...)
}

func (w *world) locate(cwd string) project.Location {
	w.Helper()
	p, err := project.Locate(cwd, w.home)
	if err != nil {
		w.Fatalf("locate %q: %v", cwd, err)
	}
	return p
}

func (w *world) tx(fn func(ctx context.Context, tx *store.Tx) error) {
	w.Helper()
	if err := w.try(fn); err != nil {
		w.Fatal(err)
	}
}

func (w *world) try(fn func(ctx context.Context, tx *store.Tx) error) error {
	return w.store.Write(w.Context(), store.Normal, fn)
}

// resolve returns the project of a working directory.
func (w *world) resolve(cwd string) (q project.Project) {
	w.Helper()
	p := w.locate(cwd)
	w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		q, err = project.Resolve(ctx, tx, p)
		return err
	})
	return q
}

// see records one event of a session and returns the ids of the session's own
// project and of the event's.
func (w *world) see(id, cwd string) (own, event string) {
	w.Helper()
	s, q := w.saw(project.SessionEvent{ID: id, Place: w.locate(cwd), Harness: "claude"})
	return s.ProjectID, q.ID
}

func (w *world) saw(e project.SessionEvent) (s project.Session, q project.Project) {
	w.Helper()
	w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		s, q, err = project.RecordSession(ctx, tx, e)
		return err
	})
	return s, q
}

func (w *world) find(name string) (q project.Project, ok bool) {
	w.Helper()
	w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		q, ok, err = project.Find(ctx, tx, name)
		return err
	})
	return q, ok
}

// changes counts the entries of the change log.
func (w *world) changes() (n int64) {
	w.Helper()
	w.tx(func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = tx.Head(ctx)
		return err
	})
	return n
}

func (w *world) want(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: %q, want %q", what, got, want)
	}
}
