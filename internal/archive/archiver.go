package archive

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"cairn/internal/store"
)

// Part is a part of cairn whose entities are archived: which changes are its own,
// and which files they come to. The functions run inside a transaction and are
// called from several goroutines.
type Part struct {
	// Prefix is how the streams of its changes begin: "mail/".
	Prefix string
	// Root is a file or folder that is in a project's folder if and only if anything
	// of the part was archived there.
	Root string
	// Projects are the ids of the projects of which it has anything.
	Projects func(ctx context.Context, tx *store.Tx) ([]string, error)
	// Stream is the stream that holds a project's changes, "" if it has none.
	Stream func(ctx context.Context, tx *store.Tx, project string) (string, error)
	// Render makes the files of changes of one stream, oldest first. A change that
	// it refuses does not touch the others.
	Render func(ctx context.Context, tx *store.Tx, changes []store.Change) (RenderedFiles, error)
	// Every calls put with all files of every entity of a project, as it stands, each
	// path once; the zero Entity is of what is made of several.
	Every func(ctx context.Context, tx *store.Tx, project string, put func(e Entity, files []File) error) error
	// Source tells of a path whether the part's files lie there, and of which entity
	// it is the file that the entity is read from: ID "" for copies and digests.
	Source func(path string) (e Entity, ours bool)
	// Newest are the files by which the n newest entities are known; nil if the part
	// is not probed.
	Newest func(ctx context.Context, tx *store.Tx, n int) ([]FileRef, error)
	// Numbers are the highest numbers ever given, by name; Raise makes those given
	// next larger. Both nil for a part without numbers of its own.
	Numbers func(ctx context.Context, tx *store.Tx) (map[string]int64, error)
	Raise   func(ctx context.Context, tx *store.Tx, ids map[string]int64) error
}

// RenderedFiles are the files that changes come to, and what a commit of them says.
type RenderedFiles struct {
	Files   []File
	Gone    []DeletePattern // what shall not be there, unless it is among Files
	Ops     []string        // a line for each thing that was done
	Refused []store.Refusal
}

// Entity is what a file tells of: the kind and the id of its changes.
type Entity struct{ Kind, ID string }

// FileRef is the file by which an entity is known.
type FileRef struct {
	Project string
	Path    string
	Seq     int64 // of the change that made it
}

// Config says what is archived and where. Of the numbers 0 means the default.
type Config struct {
	Store *store.Store
	Dir   string // holds a folder for each project, and ids.json
	Parts []Part
	Log   *slog.Logger // nil for none

	// Identity returns a text by which another store recognises the project of an
	// archive; nil for no text. Each returns it with the folder.
	Identity func(ctx context.Context, tx *store.Tx, project string) ([]byte, error)
	// Stranger returns the id under which the archive with the identity old is put aside
	// if it is another project's than now, else "". Nil for no such check.
	Stranger func(old, now []byte) string

	Window time.Duration // for which a commit waits for more; 50 ms, negative for none
	Shards int           // workers that commit; 4
	Probe  int           // newest entities that are looked up at start; 100, negative for none
	Stale  time.Duration // how old an abandoned lock of git must be; 1 min
	Space  Space
}

// Archiver keeps the archives of a store in step with its change log (mail §10.3).
// Any number of goroutines and processes may have one: a project is worked on by
// one at a time, which the kernel's lock on a file in the archive's folder sees to.
type Archiver struct {
	Config
	shards []*shard
	turns  chan struct{} // one for each project whose files may be written at once
	counts counters

	mu      sync.Mutex
	lines   map[string]*line
	missing map[string]int // by project: what the last probe or check did not find

	pressure pressure
}

// New returns an archiver. It starts nothing.
func New(c Config) *Archiver {
	def(&c.Window, 50*time.Millisecond)
	def(&c.Shards, 4)
	def(&c.Probe, 100)
	def(&c.Stale, staleAfter)
	c.Space.defaults()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &Archiver{
		Config: c, lines: map[string]*line{}, missing: map[string]int{},
		turns: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),
	}
	a.counts.files.load.Capacity, a.counts.commits.load.Capacity = Capacity, Capacity
	for range max(c.Shards, 1) {
		a.shards = append(a.shards, newShard(c.Window))
	}
	return a
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Close ends the git processes.
func (a *Archiver) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lines {
		l.drop()
	}
	return nil
}

// line is what is known of one project's archive.
func (a *Archiver) line(project string) *line {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lines[project]
	if l == nil {
		dir := a.folder(project)
		l = &line{Archiver: a, project: project, dir: dir, shard: a.shards[shardOf(dir, len(a.shards))]}
		a.lines[project] = l
	}
	return l
}

// written is the seq up to which this process has written a project's files; 0 for none.
func (a *Archiver) written(project string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.lines[project]; l != nil {
		return l.written.Load()
	}
	return 0
}

// folder is where a project's archive is. Its name is the project's id; the name of a
// device of Windows gets -p.
func (a *Archiver) folder(project string) string { return filepath.Join(a.Dir, folderName(project)) }

func folderName(project string) string {
	stem, rest, dotted := strings.Cut(project, ".")
	bare := strings.ToLower(stem)
	for strings.HasSuffix(bare, "-p") {
		bare = strings.TrimSuffix(bare, "-p")
	}
	if !isDevice(bare) {
		return project
	}
	if stem += "-p"; dotted { // con-p becomes con-p-p, lest two projects share a folder
		stem += "."
	}
	return stem + rest
}

// locked runs f while no other process or goroutine archives the project. The lock
// lies beside the folder, which may be deleted at any time.
func (l *line) locked(ctx context.Context, f func() error) error {
	if err := makeDir(l.Dir); err != nil {
		return err
	}
	unlock, err := store.LockFile(ctx, filepath.Join(l.Dir, ".lock-"+filepath.Base(l.dir)))
	if err != nil {
		return unlockable(ctx, l.dir, err)
	}
	defer func() { _ = unlock() }()
	return f()
}
