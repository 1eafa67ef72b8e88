package cairn

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"cairn/internal/archive"
	"cairn/internal/archive/repository"
	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/documents"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/archived"
	"cairn/internal/settings"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// archiver returns the archiver of a store, with this cairn's settings.
func (c *Cairn) archiver(s *store.Store, log *slog.Logger) *archive.Archiver {
	a := c.Settings.Work.Archive
	config := archive.Config{Store: s, Dir: c.ArchiveDir(), Parts: []archive.Part{mailPart(), recordPart()}, Log: log, Space: c.Settings.Work.Disk.Space(), Identity: identityOf, Stranger: foreignArchiveID}
	if v := a.WindowMS; v != nil {
		if config.Window = time.Duration(*v) * time.Millisecond; *v == 0 {
			config.Window = -1
		}
	}
	if v := a.Shards; v != nil {
		config.Shards = *v
	}
	if v := a.ProbeMessages; v != nil {
		if config.Probe = *v; *v == 0 {
			config.Probe = -1
		}
	}
	if v := a.StaleLockSeconds; v != nil {
		config.Stale = time.Duration(*v) * time.Second
	}
	return archive.New(config)
}

// mailPart returns the functions that archive mail.
func mailPart() archive.Part {
	return archive.Part{
		Prefix:   documents.StreamPrefix,
		Root:     "project.json",
		Projects: documents.Projects,
		Stream: func(ctx context.Context, tx *store.Tx, id string) (string, error) {
			uid, err := documents.UIDOf(ctx, tx, id)
			if uid == "" {
				return "", err
			}
			return mail.Stream(uid), err
		},
		Render: func(ctx context.Context, tx *store.Tx, changes []store.Change) (archive.RenderedFiles, error) {
			pages, err := documents.Render(ctx, tx, changes)
			out := archive.RenderedFiles{Files: mailFiles(pages.Files), Ops: pages.Ops, Refused: pages.Refused}
			for _, g := range pages.Gone {
				out.Gone = append(out.Gone, repository.DeletePattern(g))
			}
			return out, err
		},
		RenderAll: func(ctx context.Context, tx *store.Tx, id string, put func(archive.Entity, []repository.File) error) error {
			uid, err := documents.UIDOf(ctx, tx, id)
			if err != nil || uid == "" {
				return err
			}
			return documents.RenderAll(ctx, tx, uid, func(d mail.Document, files []documents.File) error {
				var e archive.Entity
				if d != nil {
					e = archive.Entity{Kind: d.Kind(), ID: d.Key()}
				}
				return put(e, mailFiles(files))
			})
		},
		Source: func(path string) (archive.Entity, bool) {
			kind, id, ours := documents.SourceOf(path)
			return archive.Entity{Kind: kind, ID: id}, ours
		},
		Newest: func(ctx context.Context, tx *store.Tx, n int) ([]archive.FileRef, error) {
			newest, err := documents.Newest(ctx, tx, n)
			out := make([]archive.FileRef, 0, len(newest))
			for _, p := range newest {
				out = append(out, archive.FileRef(p))
			}
			return out, err
		},
		Numbers: documents.Numbers,
		Raise:   documents.RaiseNumbers,
	}
}

// recordPart returns the functions that archive records.
func recordPart() archive.Part {
	return archive.Part{
		Prefix:   record.StreamPrefix,
		Root:     "records",
		Projects: archived.WithRecords,
		Stream:   archived.StreamOf,
		Render: func(ctx context.Context, tx *store.Tx, changes []store.Change) (archive.RenderedFiles, error) {
			pages, err := archived.Render(ctx, tx, changes)
			out := archive.RenderedFiles{Ops: pages.Ops, Refused: pages.Refused}
			for _, f := range pages.Files {
				out.Files = append(out.Files, repository.File{Path: f.Path, Content: f.Content})
			}
			return out, err
		},
		RenderAll: func(ctx context.Context, tx *store.Tx, id string, put func(archive.Entity, []repository.File) error) error {
			return archived.RenderAll(ctx, tx, id, func(f archived.File) error {
				return put(archive.Entity{}, []repository.File{{Path: f.Path, Content: f.Content}})
			})
		},
		Source: func(path string) (archive.Entity, bool) {
			id, ours := archived.SourceOf(path)
			if id == "" {
				return archive.Entity{}, ours
			}
			return archive.Entity{Kind: record.KindRecord, ID: id}, true
		},
	}
}

func mailFiles(files []documents.File) []repository.File {
	out := make([]repository.File, 0, len(files))
	for _, f := range files {
		out = append(out, repository.File{Path: f.Path, Content: f.Content})
	}
	return out
}

// skipsArchive reports whether a store is not archived. An encrypted store has no archive
// in plain text unless archive.of_encrypted is set.
func (c *Cairn) skipsArchive(s *store.Store) bool {
	return s.Encrypted() && !settings.Value(c.Settings.Work.Archive.OfEncrypted)
}

// FollowArchive archives the writes of all processes until ctx ends, then the remaining
// changes for 30 s at most. It returns nil. An encrypted store is archived only with
// archive.of_encrypted. If several processes call it, one of them archives. It waits for a
// store that does not exist yet. Failures are logged and retried: see
// archive.Archiver.Follow.
func (c *Cairn) FollowArchive(ctx context.Context, log *slog.Logger) error {
	s, _, err := c.awaitStore(ctx)
	if ctx.Err() != nil { // the store may have been created since awaitStore last checked
		s, err = c.Opened(context.WithoutCancel(ctx), false)
	}
	if err == nil && (s == nil || c.skipsArchive(s)) {
		return nil
	}
	if err == nil {
		err = c.FinishRestore(context.WithoutCancel(ctx))
	}
	if err == nil {
		a := c.archiver(s, log)
		c.mu.Lock()
		c.following = a
		c.mu.Unlock()
		err = a.Follow(ctx)
	}
	if err != nil {
		log.Warn("the archive is not followed", "error", err)
	}
	return nil
}

// ArchiveMetrics returns the metrics of FollowArchive in this process. Without it they are
// zero, except the capacities.
func (c *Cairn) ArchiveMetrics(ctx context.Context) (archive.Metrics, error) {
	c.mu.Lock()
	a := c.following
	c.mu.Unlock()
	if a == nil {
		var none archive.Metrics
		none.Files.Capacity, none.Commits.Capacity = archive.Capacity, archive.Capacity
		return none, nil
	}
	return a.Metrics(ctx)
}

// ArchiveArgs select the archives of a command.
type ArchiveArgs struct {
	Project string // its id or an alias, "" for all
	DryRun  bool
	// Progress is called with the current step; it may be nil.
	Progress func(what string)
}

// openArchiver opens the store for a command and finds the project; id "" means all.
func (c *Cairn) openArchiver(ctx context.Context, a *ArchiveArgs) (*archive.Archiver, string, error) {
	if a.Progress == nil {
		a.Progress = func(string) {}
	}
	s, err := c.Opened(ctx, false)
	if err == nil && s == nil {
		err = fault.New(fault.NotFound, store.CodeMissing, "there is no store yet").WithHint("`cairn reconcile --reindex` restores one from its archive")
	}
	if err == nil {
		err = c.FinishRestore(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	id := ""
	if a.Project != "" {
		err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
			p, ok, err := project.Find(ctx, tx, a.Project)
			if err == nil && !ok {
				err = fault.Newf(fault.NotFound, "not_found", "project %q not found", a.Project).WithHint("`cairn project` lists them")
			}
			id = p.ID
			return err
		})
	}
	return c.archiver(s, nil), id, err
}

// openWritableArchiver is openArchiver for commands that write archives.
func (c *Cairn) openWritableArchiver(ctx context.Context, args *ArchiveArgs) (*archive.Archiver, string, error) {
	a, id, err := c.openArchiver(ctx, args)
	if err == nil && c.skipsArchive(a.Store) {
		err = fault.New(fault.Denied, "archive_plain", "the store is encrypted, and its archive would be plain text").
			WithHint("to allow this, set archive.of_encrypted = true in config.toml")
	}
	return a, id, err
}

// ArchiveStatus returns the progress of the archives. Errors: CodeMissing (NotFound)
// without a store, NotFound for an unknown project.
func (c *Cairn) ArchiveStatus(ctx context.Context, args ArchiveArgs) ([]archive.Status, error) {
	a, id, err := c.openArchiver(ctx, &args)
	if err != nil {
		return nil, err
	}
	return a.Status(ctx, id)
}

// SyncArchive archives everything that was written until now, with or without a running
// server. Errors: as ArchiveStatus; archive_plain (Denied) for an encrypted store without
// archive.of_encrypted. Errors of single archives are in Failed.
func (c *Cairn) SyncArchive(ctx context.Context, args ArchiveArgs) (out archive.SyncResult, err error) {
	a, id, err := c.openWritableArchiver(ctx, &args)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return a.Sync(ctx, id, args.Progress)
}

// VerifyArchive has git check every object of the archives. Errors: as ArchiveStatus.
func (c *Cairn) VerifyArchive(ctx context.Context, args ArchiveArgs) ([]archive.VerifyResult, error) {
	a, id, err := c.openArchiver(ctx, &args)
	if err != nil {
		return nil, err
	}
	return a.Verify(ctx, id, args.Progress)
}

// ArchiveCheck is the result of CheckArchive, in the form of mail §10.6.
type ArchiveCheck struct {
	Consistent      bool                       `json:"consistent"`
	DBMessages      int                        `json:"db_messages"`
	ArchiveMessages int                        `json:"archive_messages"`
	Missing         []archive.Finding          `json:"missing"`
	Mismatched      []archive.Finding          `json:"mismatched"`
	Orphans         []archive.Finding          `json:"orphans"`
	DuplicateIDs    []archive.Finding          `json:"duplicate_ids"`
	Uncommitted     int                        `json:"uncommitted"`
	Pending         int                        `json:"pending"`
	SetAside        []archive.FailedChange     `json:"set_aside"`
	Entities        map[string]archive.Counted `json:"entities"`
	Projects        []archive.Status           `json:"projects"`
}

// CheckArchive compares the archives with the store and changes nothing (mail §10.6).
// Errors: as ArchiveStatus, and those of unreadable archives.
func (c *Cairn) CheckArchive(ctx context.Context, args ArchiveArgs) (ArchiveCheck, error) {
	a, id, err := c.openArchiver(ctx, &args)
	if err != nil {
		return ArchiveCheck{}, err
	}
	found, err := a.Check(ctx, id, args.Progress)
	messages := found.Entities[mail.KindMessage]
	out := ArchiveCheck{
		found.Consistent, messages.DB, messages.Archive, found.Missing, found.Mismatched, found.Orphans, found.Duplicates,
		found.Uncommitted, found.Pending, found.SetAside, map[string]archive.Counted{}, found.Projects,
	}
	for name, kind := range map[string]string{
		"agents": mail.KindAgent, "deliveries": mail.KindDelivery, "contacts": mail.KindContact, "reservations": mail.KindReservation, "blobs": mail.KindBlob,
	} {
		out.Entities[name] = found.Entities[kind]
	}
	return out, err
}

// RebuildArchive writes missing and different files of the archives (mail §10.6). It is
// idempotent. Errors: as ArchiveStatus, and those of the first archive that fails.
func (c *Cairn) RebuildArchive(ctx context.Context, args ArchiveArgs) (out archive.Rebuilt, err error) {
	a, id, err := c.openWritableArchiver(ctx, &args)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return a.Rebuild(ctx, id, args.DryRun, args.Progress)
}

// ReindexResult is the result of ReindexArchive (mail §10.6).
type ReindexResult struct {
	documents.Reindexed
	NotRecoverable []string `json:"not_recoverable"` // data that archives never contain, and records that were not restored, with the reason
}

// ReindexArchive restores the store from its archives. Missing items are inserted with
// their ids, uids, times and states; existing items do not change. Without a store it
// creates one. Invalid files are listed and skipped, and so is a folder with neither
// project.json nor records. It is idempotent.
//
// Errors: CodeFormat of mail and record.CodeNewerDocument (Unavailable) for an archive
// of a newer cairn, those of the store.
func (c *Cairn) ReindexArchive(ctx context.Context, args ArchiveArgs) (ReindexResult, error) {
	if args.Progress == nil {
		args.Progress = func(string) {}
	}
	s, err := c.Opened(ctx, !args.DryRun)
	if err != nil {
		return ReindexResult{}, err
	}
	if s == nil {
		return ReindexResult{}, fault.New(fault.NotFound, store.CodeMissing, "there is no store to compare the archives with").
			WithHint("run it without --dry-run to create one")
	}
	if err := c.FinishRestore(ctx); err != nil {
		return ReindexResult{}, err
	}
	a := c.archiver(s, nil)
	folder := ""
	if args.Project != "" {
		folder = archive.FolderOf(args.Project)
	}
	r := reindexRun{
		cairn: c, store: s, moved: map[string]string{}, args: args, bad: []documents.Unusable{},
		mail: documents.NewReindexer(s, workspace.MailArchive(), args.DryRun), records: archived.NewReindexer(s, c.ObservationConfig.Filter, args.DryRun),
	}
	err = a.Each(ctx, folder, func(f archive.Archived) error { return r.add(ctx, f) }, func(folder string, why error) {
		r.unusable(folder, "", why)
	})
	if err != nil {
		return ReindexResult{}, err
	}
	for folder, id := range r.moved {
		if !args.DryRun && a.Move(folder, id) {
			args.Progress("renamed " + folder + " to " + archive.FolderOf(id))
		}
	}
	ids, err := a.Numbers()
	if err != nil {
		r.unusable("", "ids.json", err)
	}
	return r.result(ctx, ids)
}

// reindexRun is one run of ReindexArchive.
type reindexRun struct {
	cairn   *Cairn
	store   *store.Store
	moved   map[string]string // folder name → project id, for folders that do not have their project's name
	args    ArchiveArgs
	mail    *documents.Reindexer
	records *archived.Reindexer
	bad     []documents.Unusable
}

func (r *reindexRun) unusable(folder, path string, why error) {
	r.bad = append(r.bad, documents.Unusable{Project: folder, Path: path, Reason: why.Error()})
}

// add reads one folder into the store: first its mail, which describes most of the
// project, then its records.
func (r *reindexRun) add(ctx context.Context, f archive.Archived) error {
	r.args.Progress(f.Name)
	has := func(prefix string) bool {
		return slices.ContainsFunc(f.Paths, func(path string) bool { return strings.HasPrefix(path, prefix) })
	}
	if !has("project.json") && !has(record.StreamPrefix) {
		r.unusable(f.Name, "project.json", errors.New("project.json is missing, so the archive's project is unknown"))
		return nil
	}
	id, err := r.projectOf(ctx, f) // first, so that a missing project gets its keys
	if err != nil {
		return err
	}
	if has("project.json") {
		err := r.mail.Add(ctx, documents.Folder{Name: f.Name, Paths: f.Paths, Read: f.Read})
		if err != nil && (ctx.Err() != nil || fault.KindOf(err) != fault.Invalid) {
			return err
		} else if err != nil {
			r.unusable(f.Name, "project.json", err)
		}
	}
	if has(record.StreamPrefix) {
		id = cmp.Or(r.mail.ProjectID(f.Name), id)
		return r.records.Add(ctx, id, archived.Folder{Name: f.Name, Paths: f.Paths, Read: f.Read})
	}
	return nil
}

func (r *reindexRun) result(ctx context.Context, ids map[string]int64) (ReindexResult, error) {
	out, err := r.mail.Finish(ctx, ids)
	out.Unparseable = append(out.Unparseable, r.bad...)
	records, lost := r.records.Result(), strings.Split(notRecoverable, ", ")
	maps.Copy(out.Inserted, records.Inserted)
	for _, u := range records.Conflicts {
		out.Conflicts = append(out.Conflicts, documents.Unusable(u))
	}
	for _, u := range records.Unparseable {
		out.Unparseable = append(out.Unparseable, documents.Unusable(u))
	}
	for _, u := range records.NotRecoverable {
		lost = append(lost, u.Project+"/"+u.Path+": "+u.Reason)
	}
	return ReindexResult{out, lost}, err
}

// notRecoverable lists the data that archives never contain, by design (mail §10.6).
const notRecoverable = "idempotency records, session bindings, which notices were printed"
