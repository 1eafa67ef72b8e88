// Package doctor checks a store and the settings of the harnesses. For each problem it reports
// what is wrong, why it matters and how to fix it. It repairs only file permissions.
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
	"cairn/internal/memory/memories"
	"cairn/internal/observation"
	"cairn/internal/observation/forget"
	"cairn/internal/repair"
	"cairn/internal/store"
	"cairn/internal/store/disk"
	"cairn/internal/tomlfile"
	"cairn/internal/wiring"
)

// State is the result of a check.
type State string

// The states. A warning is harmless, but probably a mistake. Unknown means that the check was
// not possible. It is not a problem.
const (
	OK      State = "ok"
	Warning State = "warning"
	Problem State = "problem"
	Unknown State = "unknown"
)

// Check is one check with its result.
type Check struct {
	Area  string `json:"area"` // store or host
	Name  string `json:"name"` // stable, for programs
	State State  `json:"state"`
	What  string `json:"what"`            // the finding
	Why   string `json:"why,omitempty"`   // why it matters
	Do    string `json:"do,omitempty"`    // the recommended action
	Fixed bool   `json:"fixed,omitempty"` // the problem in What has been repaired
}

// Args are the options of a diagnosis.
type Args struct {
	Fix     bool         // repair file permissions
	Deep    bool         // compare every index, hash and document, not only pages
	Place   wiring.Paths // locations of the harnesses
	Program string       // the running program, checked if no harness names one

	Progress func(what string) // if set, called with the current check
}

// Diagnosis is the result of doctor. OK is set if no check has found a problem.
type Diagnosis struct {
	OK      bool            `json:"ok"`
	Checks  []Check         `json:"checks"`
	Harness []wiring.Report `json:"harnesses"`
}

// Key is the state of a store's key.
type Key struct {
	Bytes []byte // nil if the store is not encrypted or no key matches
	Why   string // the reason why an encrypted store cannot be read; "" if it can
	Place string // where the key was found
	Wide  bool   // other users can read the key's file
}

// Hub is the state of a user's hub.
type Hub struct{ State, Why, Hint string }

// Subject is the store and the settings to check, as far as the settings are readable. Its store
// must not be open. The functions are called one at a time. Functions with a store get the store
// that doctor has opened.
type Subject struct {
	DB, Dir string // the database file, the data directory
	Wait    time.Duration
	Clock   func() time.Time

	Settings  error                                 // the error of the settings, nil if they are valid
	Unknown   func() ([]tomlfile.UnknownKey, error) // the unknown keys of config.toml
	Key       func() (Key, error)
	Restores  func() ([]string, error) // folders of interrupted restores
	Hooks     func(ctx context.Context, root string) (dir string, hooks []githook.HookStatus, err error)
	Followers func(ctx context.Context, s *store.Store) (followers.Account, error)
	Device    func(ctx context.Context, s *store.Store) (note string, err error)
	Hub       func(ctx context.Context, b *memories.Service, u memory.User) (Hub, error) // asks the hub, for three seconds at most
}

// doctorRun is one run of Diagnose.
type doctorRun struct {
	Diagnosis
	subject         Subject
	args            Args
	area            string
	journal         *observation.Service // without a store if it is missing or unreadable
	key             []byte               // of an encrypted store, if a key matches
	keyAt           string               // the key's file if its permissions were checked
	older           bool                 // the store has an older schema
	storeUnreadable bool                 // the store exists and cannot be read
}

// Diagnose checks the store and the harnesses. Without Fix it changes nothing, not even by
// reading. It also works with invalid settings and a damaged store, and reports them
// (observations §15). It starts the connected program once, without the user's store.
func Diagnose(ctx context.Context, of Subject, a Args) (Diagnosis, error) {
	if a.Progress == nil {
		a.Progress = func(string) {}
	}
	d := &doctorRun{subject: of, args: a, journal: observation.New(nil, observation.Config{}), Diagnosis: Diagnosis{Checks: []Check{}, Harness: []wiring.Report{}}}
	err := d.run(ctx)
	d.OK = !slices.ContainsFunc(d.Checks, func(c Check) bool { return c.State == Problem && !c.Fixed })
	return d.Diagnosis, err
}

func (d *doctorRun) run(ctx context.Context) (err error) {
	d.area = "store"
	d.settings()
	d.checkKey()
	d.unknownKeys()
	d.encryption()
	d.rights()
	d.volume()
	var s *store.Store
	if !d.storeUnreadable {
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
	if s != nil && !d.storeUnreadable {
		d.forgetting(ctx)
		d.followers(ctx, s)
		d.replication(ctx, s)
		d.device(ctx, s)
	}
	d.area = "host"
	if s != nil && !d.storeUnreadable && !d.older {
		d.undecidedProjects(ctx, s)
		d.guards(ctx, s)
	}
	d.host(ctx)
	return ctx.Err()
}

func (d *doctorRun) add(name string, state State, what, why, do string) {
	if state == OK {
		why, do = "", ""
	}
	d.Checks = append(d.Checks, Check{Area: d.area, Name: name, State: state, What: what, Why: why, Do: do})
}

// unknown records that a check was not possible.
func (d *doctorRun) unknown(name string, err error) {
	d.add(name, Unknown, messageOf(err), "this could not be checked", hintOf(err))
}

func messageOf(err error) string { return fault.As(err).Message }

func hintOf(err error) string { return fault.As(err).Hint }

// tooOpen is a file or folder with too many permissions.
type tooOpen struct {
	path string
	mode fs.FileMode
	want fs.FileMode
}

func (d *doctorRun) rights() {
	if runtime.GOOS == "windows" {
		d.add("rights", Unknown, "rights are not checked on Windows", "", "files in your profile are private by default")
		return
	}
	if closed := disk.Unwritable(d.subject.DB); len(closed) > 0 {
		d.add("rights", Problem, "this user cannot write "+strings.Join(closed, ", "), "nothing is recorded",
			"make it writable for this user, or set CAIRN_HOME to another folder")
		return
	}
	wide, err := d.tooOpen()
	if err != nil {
		d.unknown("rights", err)
		return
	}
	if len(wide) == 0 {
		d.add("rights", OK, "only their owner can read the data directory and its files", "", "")
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

func (d *doctorRun) fixRights(wide []tooOpen) {
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

// tooOpen lists the files and folders whose permissions differ from those of observations §1.
func (d *doctorRun) tooOpen() (wide []tooOpen, err error) {
	look := func(path string, want fs.FileMode) error {
		if path == d.keyAt {
			return nil // already reported
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
	files, err := disk.Files(d.subject.DB)
	for _, f := range files {
		err = errors.Join(err, look(f.Path, 0o600))
	}
	err = errors.Join(err, look(d.subject.Dir, 0o700))
	for _, name := range []string{"cairn.log", "cairn.log.1", "hook-times", "hook-times.1", "key", "http-token", "hub.db"} {
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

// littleSpace is the number of free bytes below which a disk is a problem.
const littleSpace = 100 << 20

func (d *doctorRun) volume() {
	dir := filepath.Dir(d.subject.DB)
	for !isThere(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	v, err := disk.VolumeOf(dir)
	if err != nil {
		d.unknown("disk", err)
		return
	}
	state := OK
	if v.Free < littleSpace {
		state = Problem
	}
	d.add("disk", state, megabytes(v.Free)+" free", "when the disk is full, nothing is recorded",
		"free some space on the volume of "+dir)
	switch {
	case v.Network:
		d.add("volume", Problem, dir+" is on a network file system ("+v.Kind+")",
			"file locks are not reliable there, and writers on two machines can damage the store",
			"set CAIRN_HOME to a folder on a local disk and move the files while no agent runs")
	case v.Kind == "fuse":
		d.add("volume", Unknown, dir+" is on a FUSE file system", "if it is on another machine, file locks are not reliable",
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

// schema reports the version of the store's schema. opened is the error of opening the store.
func (d *doctorRun) schema(opened error) {
	found, known, err := store.Schema(d.subject.DB, d.key)
	d.older = found < known
	switch {
	case err != nil:
		d.unknown("schema", err)
	case fault.HasCode(opened, store.CodeCorrupt): // the version may be damaged; content reports that
	case found > known:
		d.add("schema", Problem, fmt.Sprintf("the store has schema %d, this cairn supports %d", found, known),
			"it can be neither read nor written", "upgrade cairn")
	case found > 0 && found < known:
		d.add("schema", OK, fmt.Sprintf("schema %d; the next event upgrades it to %d", found, known), "", "")
	case found > 0:
		d.add("schema", OK, fmt.Sprintf("schema %d", found), "", "")
	}
}

// content checks the content of the store. err is the error of opening it.
func (d *doctorRun) content(ctx context.Context, s *store.Store, err error) {
	if fault.HasCode(err, store.CodeMissing) {
		d.add("content", OK, "there is no store yet; the first event creates it", "", "")
		return
	}
	if fault.HasCode(err, store.CodeNewer) {
		d.storeUnreadable = true
		return // already reported
	}
	found := []string(nil)
	if err == nil {
		d.args.Progress("checking the store")
		found, err = d.check(ctx, s)
	}
	d.storeUnreadable = err != nil
	const why, do = "data on a damaged page cannot be read, and nothing is recorded", "run `cairn doctor --salvage`"
	switch {
	case err != nil && fault.KindOf(err) == fault.Internal:
		d.add("content", Problem, messageOf(err), why, do)
	case err != nil:
		d.add("content", Problem, "the store cannot be read: "+messageOf(err), "agents get no memory", hintOf(err))
	case len(found) > 0:
		d.add("content", Problem, repair.Summary(found), why, do)
	case d.args.Deep:
		d.add("content", OK, "pages, indexes, references and the change log are intact", "", "")
	default:
		d.add("content", OK, "pages are intact", "", "")
	}
}

func (d *doctorRun) check(ctx context.Context, s *store.Store) ([]string, error) {
	if !d.args.Deep {
		return s.QuickCheck(ctx)
	}
	found, err := s.Check(ctx)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return repair.CheckContent(ctx, s)
}

// longLog is the minimum size of a write-ahead log that suggests missing checkpoints.
const longLog = 128 << 20

func (d *doctorRun) log() {
	found, err := store.LogDamage(d.subject.DB, d.key)
	if err != nil {
		d.unknown("log", err)
		return
	}
	if len(found) > 0 {
		d.add("log", Problem, repair.Summary(found), "the latest records are missing, and the next write overwrites them", "end the agents' sessions, then run `cairn doctor --salvage`")
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
			"a process reads an old state and prevents checkpoints; reads get slower", "end agents' sessions that hang")
	}
}

// leftovers reports files of interrupted operations.
func (d *doctorRun) leftovers() {
	files, err := disk.Copies(d.subject.DB)
	if err != nil {
		d.unknown("leftovers", err)
		return
	}
	var abandoned, kept []string
	for _, f := range files {
		if f.Role == disk.Abandoned {
			abandoned = append(abandoned, f.Path)
		} else {
			kept = append(kept, f.Path)
		}
	}
	const why = "they need space and contain copies of recorded data"
	for _, pattern := range []string{"cairn-dry-run-*", "cairn-examine-*", "cairn-backup-*", "cairn-restore-*"} {
		dirs, err := filepath.Glob(filepath.Join(os.TempDir(), pattern))
		for _, dir := range dirs {
			info, serr := os.Stat(dir)
			_, rerr := os.ReadDir(dir) // folders of other users do not matter
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
		d.add("leftovers", Problem, "files of interrupted operations: "+strings.Join(abandoned, ", "), why, "remove them; `cairn backup` completes an interrupted restore")
	case len(kept) > 0:
		d.add("leftovers", OK, "kept copies of the store: "+strings.Join(kept, ", "), "", "")
	default:
		d.add("leftovers", OK, "there are no files of interrupted operations", "", "")
	}
}

// forgetting reports a purge or rescan that could not clear its bytes from the files.
func (d *doctorRun) forgetting(ctx context.Context) {
	if d.older {
		return // an older schema has no purges
	}
	pending, err := forget.IsUnfinished(ctx, d.journal)
	switch {
	case err != nil:
		d.unknown("forgetting", err)
	case pending:
		d.add("forgetting", Problem, "purged or redacted data is deleted, but bytes of it are still in the store's files",
			"programs that read the files can find them", "end the processes that have the store open, then run `cairn sweep`")
	default:
		d.add("forgetting", OK, "the files contain no purged data", "", "")
	}
}
