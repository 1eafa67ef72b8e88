package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"cairn"
	"cairn/internal/archive"
	"cairn/internal/mcp"
	"cairn/internal/settings"
)

// archiveFault makes the archive of a town fail until it is repaired.
type archiveFault struct {
	prepare      func(h *home) // may be nil
	make, repair func(w *town) error
	anew         bool   // restart the server after the fault
	unnoticed    bool   // the follower continues to work
	keeps        string // a user's file, which must remain
	whole        bool   // no project can be archived during the fault
	withheld     bool   // caused by settings, so not an error
}

// TestWritesSucceedWhateverBecomesOfTheArchive checks the second half of mail §1's classes (G2, G3,
// §14, §15.2). During any archive fault every writing tool succeeds and stores its rows. The
// metrics rise and fall again after a repair. Then the follower catches up completely.
func TestWritesSucceedWhateverBecomesOfTheArchive(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	faults := faultsOfArchives()
	maps.Copy(faults, faultsOfArchiveVolumes())
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := prepared(newHome(t))
			if f.prepare != nil {
				f.prepare(h)
			}
			s := h.serves()
			found(h, s.client).staysWritable(s, f)
		})
	}
}

func faultsOfArchives() map[string]archiveFault {
	root := func(w *town) string { return filepath.Join(w.dataDir(), "archive") }
	shop := func(w *town) string { return filepath.Join(root(w), "shop") }
	main := func(w *town) string { return filepath.Join(shop(w), ".git", "refs", "heads", "main") }
	aside := func(path func(w *town) string) func(w *town) error {
		return func(w *town) error {
			return errors.Join(os.Rename(path(w), path(w)+"-aside"), os.WriteFile(path(w), nil, 0o600))
		}
	}
	back := func(path func(w *town) string) func(w *town) error {
		return func(w *town) error {
			return errors.Join(os.Remove(path(w)), os.Rename(path(w)+"-aside", path(w)))
		}
	}
	git := func(args ...string) func(w *town) error {
		return func(w *town) error {
			_, err := gitIn(shop(w), args...)
			return err
		}
	}
	return map[string]archiveFault{
		"the root is a file":  {make: aside(root), repair: back(root), whole: true},
		"a project is a file": {make: aside(shop), repair: back(shop)},
		"the root is gone":    {make: func(w *town) error { return os.RemoveAll(root(w)) }, unnoticed: true},
		"main is gone":        {make: git("update-ref", "-d", "refs/heads/main"), unnoticed: true},
		"HEAD is detached":    {make: git("checkout", "--quiet", "--detach"), unnoticed: true},
		"a person has committed": {
			make: func(w *town) error {
				return errors.Join(os.WriteFile(filepath.Join(shop(w), "README"), []byte("mine\n"), 0o600),
					git("add", "README")(w), git("commit", "--quiet", "-m", "A word from a person")(w))
			},
			unnoticed: true,
			keeps:     "README",
		},
		"objects are missing": {
			make: func(w *town) error {
				return os.Rename(filepath.Join(shop(w), ".git", "objects", "pack"), filepath.Join(w.dir, "pack"))
			},
			repair: func(w *town) error {
				return moveInto(filepath.Join(shop(w), ".git", "objects", "pack"), filepath.Join(w.dir, "pack"))
			},
		},
		"main is no branch": {
			make: func(w *town) error {
				return errors.Join(os.Rename(main(w), main(w)+"-aside"), os.WriteFile(main(w), []byte("no commit\n"), 0o600))
			},
			repair: func(w *town) error { return os.Rename(main(w)+"-aside", main(w)) },
		},
		"the disk is critical": {
			make:     func(w *town) error { w.settle("[disk]\ncritical_mb = 1000000000\nfatal_mb = 0\n"); return nil },
			repair:   func(w *town) error { w.settle(""); return nil },
			whole:    true,
			anew:     true,
			withheld: true,
		},
	}
}

// moveInto moves the files of one folder into another, which may already contain files.
func moveInto(to, from string) error {
	files, err := os.ReadDir(from)
	err = errors.Join(err, os.MkdirAll(to, 0o700))
	for _, f := range files {
		err = errors.Join(err, os.Rename(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())))
	}
	return err
}

// serving does the work of cairn serve in this process, so that the test can read the archive's
// metrics.
type serving struct {
	*client
	cairn *cairn.Cairn
	stop  func()
}

// serves serves mail over MCP and follows the archive until stop is called.
func (h *home) serves() *serving {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.t.Context()))
	k, err := cairn.Open(cairn.Config{Home: h.dir, Dir: h.dataDir(), Cwd: h.repo, Setting: func(key string) string { return h.vars[settings.EnvName(key)] }})
	if err != nil {
		h.t.Fatal(err)
	}
	server, err := mcp.NewServer(mcp.Config{Version: "1", Tools: mcp.MailTools(k.Mail(), mcp.MailOptions{}), Resources: mcp.MailResources(k.Mail(), mcp.MailOptions{})})
	if err != nil {
		h.t.Fatal(err)
	}
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan error, 2)
	go func() { ended <- server.ServeStdio(ctx, fromClient, toClient) }()
	go func() { ended <- k.FollowArchive(ctx, slog.New(slog.DiscardHandler)) }()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(h.t.Context(),
		&sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	s := &serving{client: &client{ClientSession: session, t: h.t}, cairn: k}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		err := session.Close()
		cancel()
		if err := errors.Join(err, <-ended, <-ended, k.Close()); err != nil && !errors.Is(err, context.Canceled) {
			h.t.Errorf("serving: %v", err)
		}
	}
	h.t.Cleanup(s.stop)
	return s
}

func (s *serving) metrics() archive.Metrics {
	s.t.Helper()
	m, err := s.cairn.ArchiveMetrics(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// staysWritable creates a fault, calls every tool, and repairs the fault.
func (w *town) staysWritable(s *serving, f archiveFault) {
	w.t.Helper()
	if f.anew {
		s.stop()
	}
	if err := f.make(w); err != nil {
		w.t.Fatal(err)
	}
	if f.anew {
		s = w.serves()
	}
	for _, x := range w.writings() {
		before := w.changed(x.kind)
		s.failsWith("", x)
		if x.class != beside && w.changed(x.kind) == before {
			w.t.Errorf("%s stored no %s", x.tool, x.kind)
		}
	}
	w.check()
	if !f.unnoticed {
		w.soon("the metrics rise", func() bool {
			m := s.metrics()
			return m.NeedsReindex > 0 && (m.WriteErrors+m.CommitErrors > 0) != f.withheld
		})
		another := filepath.Join(w.dataDir(), "archive", "another", "project.json")
		if !f.whole {
			w.soon("another project is archived", func() bool { _, err := os.Stat(another); return err == nil })
		}
		if f.withheld {
			s.stop()
		}
		if err := f.repair(w); err != nil {
			w.t.Fatal(err)
		}
		if f.withheld {
			s = w.serves()
		}
	}
	w.soon("the archive catches up by itself", func() bool {
		found, err := s.cairn.CheckArchive(w.t.Context(), cairn.ArchiveArgs{}) // this check may run during a repair
		return err == nil && found.Consistent && found.Pending == 0 && s.metrics().NeedsReindex == 0
	})
	s.stop()
	w.wantAgreement()
	if f.keeps != "" && w.artefacts()[f.keeps] == "" {
		w.t.Errorf("%s is gone", f.keeps)
	}
}

// TestOnlyTheDatabaseIsChangedByToolsOfClassS (mail §1): the follower only refreshes archived
// entities and creates no new ones. The state of a delivery gets its file with its first change.
func TestOnlyTheDatabaseIsChangedByToolsOfClassS(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := prepared(newHome(t))
	c := h.connect("", nil)
	w := found(h, c)
	for _, x := range w.writings() {
		if x.class != inStore {
			continue
		}
		before := w.artefacts()
		c.failsWith("", x)
		w.drain()
		now, refreshed := w.artefacts(), 0
		for path, blob := range now {
			switch {
			case before[path] == blob:
			case before[path] == "" && !strings.HasPrefix(path, "agents/BlueDog/state/"):
				t.Errorf("%s made %s", x.tool, path)
			default:
				refreshed++
			}
		}
		if refreshed == 0 || len(now) < len(before) {
			t.Errorf("%s refreshed %d artefacts of %d, now %d", x.tool, refreshed, len(before), len(now))
		}
	}
	w.wantAgreement()
}

// TestWithoutAGitProgramMailGoesOn checks that mail works without git and is archived once git is
// available.
func TestWithoutAGitProgramMailGoesOn(t *testing.T) {
	t.Parallel()
	sameWithEachDriver(t)
	h := prepared(newHome(t))
	c := h.dial("", nil)
	w := found(h, c)
	c.ends()
	path := h.vars["PATH"]
	h.vars["PATH"] = t.TempDir()
	c = h.dial("", nil)
	for _, x := range w.writings() {
		if x.class != beside { // runs git to find the hooks
			c.failsWith("", x)
		}
	}
	h.soon("the log says what is missing", func() bool { return strings.Contains(c.stderr.String(), "git") })
	c.ends()
	h.check()
	if out := h.cairn("archive", "status"); strings.Contains(out, " 0 changes behind") {
		t.Errorf("archive status says\n%s", out)
	}
	h.vars["PATH"] = path
	c = h.dial("", nil)
	h.soon("the archive catches up by itself", func() bool { return strings.Contains(h.cairn("archive", "status"), " 0 changes behind") })
	c.ends()
	w.wantAgreement()
}
