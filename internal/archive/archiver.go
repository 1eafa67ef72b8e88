package archive

import (
	"context"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"cairn/internal/archive/repository"
	"cairn/internal/store"
	"cairn/internal/store/follow"
	"cairn/internal/store/locks"
)

// Part describes a part of cairn whose entities are archived: its changes and how to
// render them as files. The functions run inside a transaction and are called from
// several goroutines.
type Part struct {
	// Prefix is the prefix of the part's streams: "mail/".
	Prefix string
	// Root is a file or folder that exists in a project's folder if and only if the part
	// has archived something there.
	Root string
	// Projects returns the ids of the projects with data of the part.
	Projects func(ctx context.Context, tx *store.Tx) ([]string, error)
	// Stream returns the stream of a project's changes, "" if it has none.
	Stream func(ctx context.Context, tx *store.Tx, project string) (string, error)
	// Render renders changes of one stream, oldest first, as files. A refused change does
	// not affect the others.
	Render func(ctx context.Context, tx *store.Tx, changes []store.Change) (RenderedFiles, error)
	// RenderAll calls put with all files of every present entity of a project, each path
	// once. Files made from several entities have the zero Entity.
	RenderAll func(ctx context.Context, tx *store.Tx, project string, put func(e Entity, files []repository.File) error) error
	// Source reports whether a path belongs to the part, and from which entity's file the
	// entity is read. ID is "" for copies and digests.
	Source func(path string) (e Entity, ours bool)
	// Newest returns the files of the n newest entities. It is nil if the part is not
	// probed.
	Newest func(ctx context.Context, tx *store.Tx, n int) ([]FileRef, error)
	// Numbers returns the highest numbers ever assigned, by name. Raise makes later
	// numbers larger than the given ones. Both are nil for a part without numbers.
	Numbers func(ctx context.Context, tx *store.Tx) (map[string]int64, error)
	Raise   func(ctx context.Context, tx *store.Tx, ids map[string]int64) error
}

// RenderedFiles contains the files for some changes, and the lines for the commit
// message.
type RenderedFiles struct {
	Files   []repository.File
	Gone    []repository.DeletePattern // files to delete, unless they are in Files
	Ops     []string                   // a line for each operation
	Refused []follow.Refusal
}

// Entity identifies the entity of a file by the kind and the id of its changes.
type Entity struct{ Kind, ID string }

// FileRef refers to the file of an entity.
type FileRef struct {
	Project string
	Path    string
	Seq     int64 // seq of the change that created the file
}

// Config configures an archiver. 0 means the default of a number.
type Config struct {
	Store *store.Store
	Dir   string // contains a folder for each project, and ids.json
	Parts []Part
	Log   *slog.Logger // nil for none

	// Identity returns a text that identifies the project of an archive in another store,
	// or nil. Each returns it with the folder.
	Identity func(ctx context.Context, tx *store.Tx, project string) ([]byte, error)
	// Stranger returns a new id for the archive with the identity old if it belongs to
	// another project than now, else "". Nil disables the check.
	Stranger func(old, now []byte) string

	Window time.Duration // how long a commit waits for more changes; 50 ms, negative for no wait
	Shards int           // number of workers that commit; 4
	Probe  int           // number of newest entities checked at start; 100, negative for none
	Stale  time.Duration // minimum age of an abandoned lock of git; 1 min
	Space  Space
}

// Archiver keeps the archives of a store up to date with its change log (mail §10.3). Any
// number of goroutines and processes may use one. A kernel lock on a file in the
// archive's folder ensures that only one of them works on a project.
type Archiver struct {
	Config
	shards []*shard
	turns  chan struct{} // one slot for each project whose files may be written concurrently
	counts counters

	mu      sync.Mutex
	lines   map[string]*projectWorker
	missing map[string]int // by project: number of files missing in the last probe or check

	pressure pressure
}

// New returns an archiver. It starts no process or goroutine.
func New(c Config) *Archiver {
	def(&c.Window, 50*time.Millisecond)
	def(&c.Shards, 4)
	def(&c.Probe, 100)
	def(&c.Stale, time.Minute)
	c.Space.defaults()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	a := &Archiver{
		Config: c, lines: map[string]*projectWorker{}, missing: map[string]int{},
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

// worker returns the worker of a project.
func (a *Archiver) worker(project string) *projectWorker {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lines[project]
	if l == nil {
		dir := a.folder(project)
		l = &projectWorker{Archiver: a, project: project, dir: dir, shard: a.shards[shardOf(dir, len(a.shards))]}
		a.lines[project] = l
	}
	return l
}

// written returns the seq up to which this process has written a project's files; 0 for
// none.
func (a *Archiver) written(project string) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l := a.lines[project]; l != nil {
		return l.written.Load()
	}
	return 0
}

// folder returns the folder of a project's archive. It is named after the project's id;
// names of Windows devices get -p.
func (a *Archiver) folder(project string) string { return filepath.Join(a.Dir, folderName(project)) }

func folderName(project string) string {
	stem, rest, dotted := strings.Cut(project, ".")
	bare := strings.ToLower(stem)
	for strings.HasSuffix(bare, "-p") {
		bare = strings.TrimSuffix(bare, "-p")
	}
	if !repository.IsDevice(bare) {
		return project
	}
	if stem += "-p"; dotted { // con-p becomes con-p-p, so that no two projects share a folder
		stem += "."
	}
	return stem + rest
}

// locked runs f while no other process or goroutine archives the project. The lock is
// next to the folder, because the folder may be deleted at any time.
func (l *projectWorker) locked(ctx context.Context, f func() error) error {
	if err := repository.MakeDir(l.Dir); err != nil {
		return err
	}
	unlock, err := locks.LockFile(ctx, filepath.Join(l.Dir, ".lock-"+filepath.Base(l.dir)))
	if err != nil {
		return unlockable(ctx, l.dir, err)
	}
	defer func() { _ = unlock() }()
	return f()
}
