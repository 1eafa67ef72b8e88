package service

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/project"
	"cairn/internal/redact"
	"cairn/internal/store"
	"cairn/internal/store/storetest"

	"go.uber.org/goleak"
)

// Environment variables that control a child process.
const (
	childVar = "CAIRN_MAIL_CHILD" // the function in children to run
	pathVar  = "CAIRN_MAIL_STORE"
	nameVar  = "CAIRN_MAIL_NAME"
)

// children are the functions that child processes run on a store's mail.
var children = map[string]func(ctx context.Context, o *Mail, name string) error{
	"register": registerOnce,
	"create":   createOnce,
	"reserve":  reserveOnce,
	"send":     sendMany,
}

func TestMain(m *testing.M) {
	flag.Parse()
	if name := os.Getenv(childVar); name != "" {
		os.Exit(childMain(name))
	}
	goleak.VerifyTestMain(m)
}

func childMain(name string) int {
	ctx := context.Background()
	s, err := store.Open(ctx, storetest.Config(store.Config{Path: os.Getenv(pathVar), Role: store.Server}))
	if err == nil {
		err = errors.Join(children[name](ctx, New(s, mail.Config{}), os.Getenv(nameVar)), s.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// yard is mail on a store of the test, and a folder for projects.
type yard struct {
	testing.TB
	*Mail
	clock *storetest.Clock
	home  string
	dir   string // with links resolved
}

func newYard(t testing.TB, c mail.Config) *yard {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{TB: t, clock: &storetest.Clock{}, home: filepath.Join(base, "home"), dir: filepath.Join(base, "work")}
	y.mkdir(y.home)
	y.mkdir(y.dir)
	y.clock.Move(1_700_000_000 * time.Second)
	s := storetest.Open(t, store.Config{Clock: func() time.Time {
		y.clock.Move(time.Millisecond)
		return y.clock.Now()
	}})
	if c.Filter == nil {
		if c.Filter, err = redact.New(redact.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if c.Archive.CommitOf == nil {
		c.Archive = theArchive()
	}
	c.MediaType = http.DetectContentType
	y.Mail = New(s, c)
	return y
}

// theArchive returns the store's archive, as the façade passes it to mail.
func theArchive() mail.Archive {
	commit := func(k archive.Commit) mail.Commit {
		return mail.Commit{SHA: k.SHA, Summary: k.Summary, Authored: mail.Time(k.Authored)}
	}
	return mail.Archive{
		CommitOf: func(ctx context.Context, tx *store.Tx, project, seq int64) (*mail.Commit, error) {
			k, ok, err := archive.CommitOf(ctx, tx, project, seq)
			if !ok {
				return nil, err
			}
			c := commit(k)
			return &c, nil
		},
		CommitsBy: func(ctx context.Context, tx *store.Tx, project int64, stream string, agents []string, limit int) (out []mail.Commit, err error) {
			found, err := archive.CommitsBy(ctx, tx, project, stream, agents, limit)
			for _, k := range found {
				out = append(out, commit(k))
			}
			return out, err
		},
		Bury: archive.ForgetSubject, Move: archive.MoveRows,
	}
}

// with returns the same yard with other settings.
func (y *yard) with(c mail.Config) *yard {
	other := *y
	other.Mail = New(y.Store, c)
	return &other
}

func (y *yard) mkdir(path string) string {
	y.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		y.Fatal(err)
	}
	return path
}

func (y *yard) write(path, text string) {
	y.Helper()
	y.mkdir(filepath.Dir(path))
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		y.Fatal(err)
	}
}

func (y *yard) path(parts ...string) string {
	return filepath.Join(append([]string{y.dir}, parts...)...)
}

// git runs the real git, isolated from the settings of this machine.
func (y *yard) git(dir string, args ...string) {
	y.Helper()
	cmd := exec.CommandContext(y.Context(), "git", append([]string{
		"-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main",
		"-c", "protocol.file.allow=always", "-c", "commit.gpgsign=false",
	}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull, "HOME="+y.home)
	if out, err := cmd.CombinedOutput(); err != nil {
		y.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// repo creates a repository with one commit.
func (y *yard) repo(parts ...string) string {
	y.Helper()
	path := y.mkdir(y.path(parts...))
	y.git(path, "init", "-q")
	y.write(filepath.Join(path, "README.md"), "hello\n")
	y.git(path, "add", "-A")
	y.git(path, "commit", "-q", "-m", "first")
	return path
}

// at returns a caller with dir as the working directory.
func (y *yard) at(dir string) mail.Caller {
	y.Helper()
	place, err := project.Locate(dir, y.home)
	if err != nil {
		y.Fatal(err)
	}
	return mail.Caller{Place: place}
}

// ensure creates the project of a path.
func (y *yard) ensure(path string) agents.ProjectInfo {
	y.Helper()
	return y.ensureAs(path, "")
}

func (y *yard) ensureAs(path, mode string) agents.ProjectInfo {
	y.Helper()
	return mailtest.Must(y.EnsureProject(y.Context(), mail.Caller{Place: project.Location{Home: y.home}}, agents.EnsureArgs{HumanKey: path, IdentityMode: mode}))(y)
}

// register registers an agent. An empty name generates one.
func (y *yard) register(key, name string) agents.Registered {
	y.Helper()
	return mailtest.Must(y.RegisterAgent(y.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: key, Program: "claude-code", Model: "m1", Name: name}))(y)
}

// changes counts the entries of the change log.
func (y *yard) changes() (n int64) {
	y.Helper()
	err := y.Store.Read(y.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		n, err = tx.Head(ctx)
		return err
	})
	if err != nil {
		y.Fatal(err)
	}
	return n
}

// sharedUID returns the uid of the shared project row.
func (y *yard) sharedUID(id int64) (uid string) {
	y.Helper()
	y.query(&uid, "SELECT p.uid FROM mail_projects m JOIN projects p ON p.key = m.project_key WHERE m.id = ?", id)
	return uid
}

// row returns the shared project row of a path.
func (y *yard) row(path string) (q project.Project) {
	y.Helper()
	err := y.Store.Read(y.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		q, _, err = project.Current(ctx, tx, y.at(path).Place)
		return err
	})
	if err != nil {
		y.Fatal(err)
	}
	return q
}

// query reads one value.
func (y *yard) query(dest any, query string, args ...any) {
	y.Helper()
	err := y.Store.Read(y.Context(), func(ctx context.Context, tx *store.Tx) error {
		return tx.Get(ctx, []any{dest}, query, args...)
	})
	if err != nil {
		y.Fatalf("%s: %v", query, err)
	}
}

// rebuilt checks that mail's changes, applied to an empty store, give the rows of this store (G5).
func (y *yard) rebuilt() {
	y.Helper()
	var docs []mail.Document
	for _, c := range storetest.Changes(y, y.Store) {
		if strings.HasPrefix(c.Stream, "mail/") {
			docs = append(docs, mailtest.Must(mail.Decode(c.Kind, c.Doc))(y))
		}
	}
	rows := func(ctx context.Context, tx *store.Tx) (text string, err error) {
		for _, table := range [...]string{
			"SELECT id, uid, slug, human_key, identity_mode, normalized_remote, folds_case, created_ts FROM mail_projects ORDER BY id",
			`SELECT id, project_id, name, program, model, task_description, inception_ts, attachments_policy, contact_policy, token_sha256,
branch, worktree, home, retired_ts, received, unread, ack_due FROM mail_agents ORDER BY id`,
			`SELECT id, uid, project_id, sender_id, thread_id, reply_to, subject, body_md, importance, ack_required, topic, created_ts, attachments,
ordinal, archive_path FROM mail_messages ORDER BY id`,
			"SELECT * FROM mail_recipients ORDER BY message_id, agent_id",
			"SELECT * FROM mail_threads ORDER BY project_id, thread_id",
			"SELECT a_agent_id, b_agent_id, status, reason, created_ts, updated_ts, expires_ts, archive_path FROM mail_contacts ORDER BY 1, 2",
			"SELECT id, uid, project_id, agent_id, path_pattern, expires_ts, released_ts, release_kind, ordinal FROM mail_reservations ORDER BY id",
		} {
			var part string
			err := tx.Get(ctx, []any{&part}, `SELECT ifnull(group_concat(line, char(10)), '') FROM (SELECT `+jsonOf(table)+` AS line FROM (`+table+`))`)
			if err != nil {
				return "", err
			}
			text += part + "\n"
		}
		return text, nil
	}
	var here, there string
	err := y.Store.Read(y.Context(), func(ctx context.Context, tx *store.Tx) (err error) {
		here, err = rows(ctx, tx)
		return err
	})
	if err == nil {
		err = store.Scratch(y.Context(), y.clock.Now(), func(ctx context.Context, tx *store.Tx) (err error) {
			for _, d := range docs {
				if err := d.Apply(ctx, tx, 1); err != nil {
					return err
				}
			}
			there, err = rows(ctx, tx)
			return err
		})
	}
	if err != nil {
		y.Fatal(err)
	}
	if here != there {
		y.Errorf("the log leads to\n%s\nthe rows are\n%s", there, here)
	}
	err = y.Store.Read(y.Context(), func(ctx context.Context, tx *store.Tx) error {
		found, err := documents.Check(ctx, tx)
		if len(found) > 0 {
			y.Errorf("the mail is damaged:\n%s", strings.Join(found, "\n"))
		}
		return err
	})
	if err != nil {
		y.Fatal(err)
	}
}

// jsonOf returns an SQL expression for a query's row as text.
func jsonOf(query string) string {
	columns, _, _ := strings.Cut(strings.TrimPrefix(query, "SELECT "), " FROM ")
	return "json_array(" + columns + ")"
}

// wantError checks an error's code and required fields, and some details as JSON.
func wantError(t testing.TB, what string, err error, code string, details ...string) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Errorf("%s: %v, want %s", what, err, code)
		return
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f.Details); err != nil {
		t.Fatal(err)
	}
	if f.Code != code || f.Kind != fault.KindOf(mail.Errorf(code, "an error")) || f.Hint == "" || f.Message == "" || f.Details["recoverable"] == nil {
		t.Errorf("%s: %s %s %q (hint %q) %s, want %s", what, f.Kind, f.Code, f.Message, f.Hint, b.String(), code)
	}
	for _, d := range details {
		if !strings.Contains(f.Message+"\n"+b.String(), d) {
			t.Errorf("%s: %q %s, want %s in it", what, f.Message, b.String(), d)
		}
	}
}
