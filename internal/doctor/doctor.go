// Package doctor checks a store and the settings of the harnesses. For each problem it
// reports what is wrong, why it matters and what to do. It repairs only file permissions.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/followers"
	"cairn/internal/githook"
	"cairn/internal/memory"
	"cairn/internal/observation"
	"cairn/internal/observation/forget"
	"cairn/internal/repair"
	"cairn/internal/store"
	"cairn/internal/tomlfile"
	"cairn/internal/wiring"
)

// State is how a check came out.
type State string

// The states. A warning is of something that harms nothing, but is hardly meant.
// What cannot be found out is no problem.
const (
	OK      State = "ok"
	Warning State = "warning"
	Problem State = "problem"
	Unknown State = "unknown"
)

// Check is one thing that doctor looked at.
type Check struct {
	Area  string `json:"area"` // store or host
	Name  string `json:"name"` // stable, for programs
	State State  `json:"state"`
	What  string `json:"what"`            // what was found
	Why   string `json:"why,omitempty"`   // why it matters
	Do    string `json:"do,omitempty"`    // what to do about it
	Fixed bool   `json:"fixed,omitempty"` // it was a problem, which What names, and has been repaired
}

// Args say what to look at.
type Args struct {
	Fix     bool         // repair what can be repaired without losing anything: rights
	Deep    bool         // compare every index, hash and document, not only pages
	Place   wiring.Paths // where the harnesses are
	Program string       // the running program, asked for its tools where no harness names one

	Progress func(what string) // if set, is told what is being looked at
}

// Diagnosis is what doctor found. OK says that no check has found a problem.
type Diagnosis struct {
	OK      bool            `json:"ok"`
	Checks  []Check         `json:"checks"`
	Harness []wiring.Report `json:"harnesses"`
}

// Key is what is known of the key of a store.
type Key struct {
	Bytes []byte // nil without a store that is encrypted, or a key that fits
	Why   string // why an encrypted store cannot be read; "" if it can
	Place string // of the key that was found
	Wide  bool   // others may read the key's file
}

// Hub is how a hub of a user does.
type Hub struct{ State, Why, Hint string }

// Subject is what doctor looks at, as far as the settings could be read. Its store is not
// open. All functions are called one at a time; those over a store get the one that doctor
// has opened.
type Subject struct {
	DB, Dir string // the database file, the data directory
	Wait    time.Duration
	Clock   func() time.Time

	Settings  error                                 // why the settings cannot be used, nil if they can
	Unknown   func() ([]tomlfile.UnknownKey, error) // the keys of config.toml that nothing reads
	Key       func() (Key, error)
	Restores  func() ([]string, error) // folders of restores that were interrupted
	Hooks     func(ctx context.Context, root string) (dir string, hooks []githook.HookStatus, err error)
	Followers func(ctx context.Context, s *store.Store) (followers.Account, error)
	Device    func(ctx context.Context, s *store.Store) (note string, err error)
	Hub       func(ctx context.Context, b *memory.Service, u memory.User) (Hub, error) // asks it, for three seconds at most
}

// diagnosing is one run of Diagnose.
type diagnosing struct {
	Diagnosis
	subject Subject
	args    Args
	area    string
	journal *observation.Service // over no store if there is none or it cannot be read
	key     []byte               // of an encrypted store, if there is one that fits
	keyAt   string               // the key's file if its rights were looked at
	older   bool                 // the store has an older schema
	unread  bool                 // there is a store, and it cannot be read
}

// Diagnose looks at the store and at the harnesses. Without Fix it changes
// nothing, not even by looking, and it works where the settings are broken or
// the store is damaged, which are among the things it reports (observations §15).
// It starts the wired program once, away from the store.
func Diagnose(ctx context.Context, of Subject, a Args) (Diagnosis, error) {
	if a.Progress == nil {
		a.Progress = func(string) {}
	}
	d := &diagnosing{subject: of, args: a, journal: observation.New(nil, observation.Config{}), Diagnosis: Diagnosis{Checks: []Check{}, Harness: []wiring.Report{}}}
	err := d.run(ctx)
	d.OK = !slices.ContainsFunc(d.Checks, func(c Check) bool { return c.State == Problem && !c.Fixed })
	return d.Diagnosis, err
}

func (d *diagnosing) run(ctx context.Context) (err error) {
	d.area = "store"
	d.settings()
	d.keyed()
	d.unknownKeys()
	d.encryption()
	d.rights()
	d.volume()
	var s *store.Store
	if !d.unread {
		s, err = store.Examine(ctx, store.Config{Path: d.subject.DB, Key: d.key, Wait: d.subject.Wait, Clock: d.subject.Clock})
		if s != nil {
			defer func() { err = errors.Join(err, s.Close()) }()
		}
		d.schema(err)
		d.journal = observation.New(s, observation.Config{})
		d.content(ctx, s, err)
	}
	d.log()
	d.leftovers()
	if s != nil && !d.unread {
		d.forgetting(ctx)
		d.followers(ctx, s)
		d.replication(ctx, s)
		d.device(ctx, s)
	}
	d.area = "host"
	if s != nil && !d.unread && !d.older {
		d.undecidedProjects(ctx, s)
		d.guards(ctx, s)
	}
	d.host(ctx)
	return ctx.Err()
}

func (d *diagnosing) add(name string, state State, what, why, do string) {
	if state == OK {
		why, do = "", ""
	}
	d.Checks = append(d.Checks, Check{Area: d.area, Name: name, State: state, What: what, Why: why, Do: do})
}

// unknown notes that a check could not be made.
func (d *diagnosing) unknown(name string, err error) {
	d.add(name, Unknown, messageOf(err), "this could not be looked at", hintOf(err))
}

func messageOf(err error) string { return fault.As(err).Message }

func hintOf(err error) string { return fault.As(err).Hint }

// tooOpen is a file or folder whose rights are wider than they should be.
type tooOpen struct {
	path string
	mode fs.FileMode
	want fs.FileMode
}

func (d *diagnosing) rights() {
	if runtime.GOOS == "windows" {
		d.add("rights", Unknown, "rights are not looked at on Windows", "", "files in your profile are yours by default")
		return
	}
	if closed := store.Unwritable(d.subject.DB); len(closed) > 0 {
		d.add("rights", Problem, "this user cannot write "+strings.Join(closed, ", "), "nothing is recorded",
			"give yourself the right to write there, or set CAIRN_HOME to a folder of your own")
		return
	}
	wide, err := d.tooOpen()
	if err != nil {
		d.unknown("rights", err)
		return
	}
	if len(wide) == 0 {
		d.add("rights", OK, "data directory and files are their owner's alone", "", "")
		return
	}
	var names []string
	for _, w := range wide {
		names = append(names, fmt.Sprintf("%s is %03o, not %03o", w.path, w.mode.Perm(), w.want))
	}
	d.add("rights", Problem, strings.Join(names, "; "), "other users of this machine can read what you and your agents did",
		"run `cairn doctor --fix`")
	if d.args.Fix {
		d.fixRights(wide)
	}
}

func (d *diagnosing) fixRights(wide []tooOpen) {
	var err error
	for _, w := range wide {
		err = errors.Join(err, os.Chmod(w.path, w.want))
	}
	last := &d.Checks[len(d.Checks)-1]
	if err != nil {
		last.Do = "it could not be repaired: " + err.Error()
		return
	}
	last.Fixed, last.Why, last.Do = true, "", ""
}

// tooOpen lists what has other rights than observations §1 wants.
func (d *diagnosing) tooOpen() (wide []tooOpen, err error) {
	look := func(path string, want fs.FileMode) error {
		if path == d.keyAt {
			return nil // said already
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && info.Mode().Perm()&^want != 0 {
			wide = append(wide, tooOpen{path, info.Mode(), want})
		}
		return err
	}
	files, err := store.Files(d.subject.DB)
	for _, f := range files {
		err = errors.Join(err, look(f.Path, 0o600))
	}
	err = errors.Join(err, look(d.subject.Dir, 0o700))
	for _, name := range []string{"cairn.log", "cairn.log.1", "key", "http-token", "hub.db"} {
		err = errors.Join(err, look(filepath.Join(d.subject.Dir, name), 0o600))
	}
	tokens, gerr := filepath.Glob(filepath.Join(d.subject.Dir, "hub-token-*"))
	err = errors.Join(err, gerr)
	for _, path := range tokens {
		err = errors.Join(err, look(path, 0o600))
	}
	for _, name := range []string{"wiring", "backups", "http-tokens", "http-logouts"} { // wiring: originals of settings files
		dir := filepath.Join(d.subject.Dir, name)
		err = errors.Join(err, look(dir, 0o700))
		files, rerr := os.ReadDir(dir)
		if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
		for _, e := range files {
			err = errors.Join(err, look(filepath.Join(dir, e.Name()), 0o600))
		}
	}
	return wide, err
}

// littleSpace is how few free bytes make a disk a problem.
const littleSpace = 100 << 20

func (d *diagnosing) volume() {
	dir := filepath.Dir(d.subject.DB)
	for !isThere(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	v, err := store.VolumeOf(dir)
	if err != nil {
		d.unknown("disk", err)
		return
	}
	state := OK
	if v.Free < littleSpace {
		state = Problem
	}
	d.add("disk", state, megabytes(v.Free)+" free", "when the disk is full nothing more is recorded",
		"free some space on the volume of "+dir)
	switch {
	case v.Network:
		d.add("volume", Problem, dir+" lies on a network file system ("+v.Kind+")",
			"file locks cannot be relied on there, and writers of two machines can damage the store",
			"set CAIRN_HOME to a folder on a local disk and move the files while no agent runs")
	case v.Kind == "fuse":
		d.add("volume", Unknown, dir+" lies on a FUSE file system", "if it is another machine's, file locks cannot be relied on",
			"make sure that it is local")
	default:
		d.add("volume", OK, "the volume is local", "", "")
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// schema reports the number of the store's schema; opened is why the store could not be
// opened.
func (d *diagnosing) schema(opened error) {
	found, known, err := store.Schema(d.subject.DB, d.key)
	d.older = found < known
	switch {
	case err != nil:
		d.unknown("schema", err)
	case fault.HasCode(opened, store.CodeCorrupt): // the number may be what is damaged: see content
	case found > known:
		d.add("schema", Problem, fmt.Sprintf("the store has schema %d, this cairn knows %d", found, known),
			"it is refused, for reading too", "upgrade cairn")
	case found > 0 && found < known:
		d.add("schema", OK, fmt.Sprintf("schema %d, which the next event brings to %d", found, known), "", "")
	case found > 0:
		d.add("schema", OK, fmt.Sprintf("schema %d", found), "", "")
	}
}

// content checks what the store holds; err is why it could not be opened.
func (d *diagnosing) content(ctx context.Context, s *store.Store, err error) {
	if fault.HasCode(err, store.CodeMissing) {
		d.add("content", OK, "there is no store yet; the first event makes it", "", "")
		return
	}
	if fault.HasCode(err, store.CodeNewer) {
		d.unread = true
		return // said already
	}
	found := []string(nil)
	if err == nil {
		d.args.Progress("checking the store")
		found, err = d.check(ctx, s)
	}
	d.unread = err != nil
	const why, do = "what stands on a damaged page cannot be read, and nothing more is recorded", "run `cairn doctor --salvage`"
	switch {
	case err != nil && fault.KindOf(err) == fault.Internal:
		d.add("content", Problem, messageOf(err), why, do)
	case err != nil:
		d.add("content", Problem, "the store cannot be read: "+messageOf(err), "its memory is not available", hintOf(err))
	case len(found) > 0:
		d.add("content", Problem, repair.Summary(found), why, do)
	case d.args.Deep:
		d.add("content", OK, "pages, indexes, references and the change log are sound", "", "")
	default:
		d.add("content", OK, "pages are sound", "", "")
	}
}

func (d *diagnosing) check(ctx context.Context, s *store.Store) ([]string, error) {
	if !d.args.Deep {
		return s.QuickCheck(ctx)
	}
	found, err := s.Check(ctx)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return repair.CheckContent(ctx, s)
}

// longLog is the size of a write-ahead log that no checkpoint shortens.
const longLog = 128 << 20

func (d *diagnosing) log() {
	found, err := store.LogDamage(d.subject.DB, d.key)
	if err != nil {
		d.unknown("log", err)
		return
	}
	if len(found) > 0 {
		d.add("log", Problem, repair.Summary(found), "what was recorded last is missing, and the next write overwrites it", "end the agents' sessions, then run `cairn doctor --salvage`")
		return
	}
	info, err := os.Stat(d.subject.DB + "-wal")
	switch {
	case err != nil || info.Size() == 0:
		d.add("log", OK, "the write-ahead log is empty", "", "")
	case info.Size() < longLog:
		d.add("log", OK, "the write-ahead log has "+megabytes(info.Size()), "", "")
	default:
		d.add("log", Problem, "the write-ahead log has "+megabytes(info.Size()),
			"some process reads an old state and keeps it from being folded in; reads get slower", "end agents' sessions that hang")
	}
}

// leftovers are files that an interrupted operation has left.
func (d *diagnosing) leftovers() {
	files, err := store.Copies(d.subject.DB)
	if err != nil {
		d.unknown("leftovers", err)
		return
	}
	var abandoned, kept []string
	for _, f := range files {
		if f.Role == store.Abandoned {
			abandoned = append(abandoned, f.Path)
		} else {
			kept = append(kept, f.Path)
		}
	}
	const why = "they take space and hold copies of what was recorded"
	for _, pattern := range []string{"cairn-dry-run-*", "cairn-examine-*", "cairn-backup-*", "cairn-restore-*"} {
		dirs, err := filepath.Glob(filepath.Join(os.TempDir(), pattern))
		for _, dir := range dirs {
			info, serr := os.Stat(dir)
			_, rerr := os.ReadDir(dir) // another user's folders do not concern us
			if err == nil && serr == nil && rerr == nil && time.Since(info.ModTime()) > time.Hour {
				abandoned = append(abandoned, dir)
			}
		}
	}
	coming, err := d.subject.Restores()
	if err != nil {
		d.unknown("leftovers", err)
		return
	}
	abandoned = append(abandoned, coming...)
	switch {
	case len(abandoned) > 0:
		d.add("leftovers", Problem, "left by interrupted operations: "+strings.Join(abandoned, ", "), why, "remove them; `cairn backup` completes a restore that was killed")
	case len(kept) > 0:
		d.add("leftovers", OK, "kept copies of the store: "+strings.Join(kept, ", "), "", "")
	default:
		d.add("leftovers", OK, "no interrupted operation has left anything", "", "")
	}
}

// forgetting reports a purge or a rescan that could not clear the files.
func (d *diagnosing) forgetting(ctx context.Context) {
	if d.older {
		return // nothing of the kind was known
	}
	pending, err := forget.IsUnfinished(ctx, d.journal)
	switch {
	case err != nil:
		d.unknown("forgetting", err)
	case pending:
		d.add("forgetting", Problem, "what was purged or redacted is out of the store, and bytes of it are still in its files",
			"whoever reads the files can find them", "end the processes that have the store open, then run `cairn sweep`")
	default:
		d.add("forgetting", OK, "nothing that was purged is left in the files", "", "")
	}
}
