package workspace

import (
	"context"
	"path/filepath"
	"time"

	"cairn/internal/archive"
	"cairn/internal/fault"
	"cairn/internal/gitread"
	"cairn/internal/mail"
	"cairn/internal/mail/service"
	"cairn/internal/observation"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/sessionstart"
	"cairn/internal/project"
	"cairn/internal/record"
	"cairn/internal/record/lookup"
	"cairn/internal/store"
)

// ObservationsOver returns the observations part for a store, which may be nil.
func (w *Workspace) ObservationsOver(s *store.Store) *observation.Service {
	return observation.New(s, w.ObservationConfig)
}

// Observations returns the observations part. Without a store it finds nothing.
func (w *Workspace) Observations(ctx context.Context) (*observation.Service, error) {
	s, err := w.Opened(ctx, false)
	if err != nil {
		return nil, err
	}
	return w.ObservationsOver(s), nil
}

// WritableObservations returns the observations part. A missing store is created.
func (w *Workspace) WritableObservations(ctx context.Context) (*observation.Service, error) {
	s, err := w.Opened(ctx, true)
	if err != nil {
		return nil, err
	}
	return w.ObservationsOver(s), nil
}

// MailService returns the mail part for a store, which may be nil.
func (w *Workspace) MailService(s *store.Store) *service.Mail {
	config := w.Settings.Work.MailConfig()
	config.Filter, config.DataFolder = w.ObservationConfig.Filter, w.Config.Dir
	config.Commits, config.Archive, config.MediaType = w.commits, MailArchive(), w.options.MediaType
	config.DiskLevel = func() mail.DiskLevel {
		level, _ := w.Settings.Work.Disk.Space().Level(w.Config.DB, w.ArchiveDir())
		return mail.DiskLevel(level)
	}
	config.Edits = func(ctx context.Context, project string, since time.Time) (all []mail.Touch, err error) {
		files, err := browse.Touched(ctx, w.ObservationsOver(s), project, since)
		for _, f := range files {
			all = append(all, mail.Touch{Path: f.Path, At: time.Unix(f.At, 0)})
		}
		return all, err
	}
	return service.New(s, config)
}

// MailArchive returns the archive functions that the mail part needs.
func MailArchive() mail.Archive {
	return mail.Archive{
		CommitOf: func(ctx context.Context, tx *store.Tx, project, seq int64) (*mail.Commit, error) {
			k, ok, err := archive.CommitOf(ctx, tx, project, seq)
			if err != nil || !ok {
				return nil, err
			}
			return &mail.Commit{SHA: k.SHA, Summary: k.Summary, Authored: mail.Time(k.Authored)}, nil
		},
		CommitsBy: func(ctx context.Context, tx *store.Tx, project int64, stream string, agents []string, limit int) (out []mail.Commit, err error) {
			found, err := archive.CommitsBy(ctx, tx, project, stream, agents, limit)
			for _, k := range found {
				out = append(out, mail.Commit{SHA: k.SHA, Summary: k.Summary, Authored: mail.Time(k.Authored)})
			}
			return out, err
		},
		Bury: archive.ForgetSubject, Move: archive.MoveRows,
	}
}

// commits lists the files that recent commits changed in the repository at a folder. The
// list is empty without a repository or without git.
func (w *Workspace) commits(ctx context.Context, root string, since time.Time) (all []mail.Touch, err error) {
	place, err := project.Locate(root, w.Config.Home)
	if err != nil || place.Root == "" || place.Gone {
		return nil, err
	}
	repository, err := gitread.Open(place.Root)
	if fault.HasCode(err, gitread.CodeNoGit) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files, err := repository.Touched(ctx, since)
	for _, f := range files {
		all = append(all, mail.Touch{Path: f.Path, At: f.At})
	}
	return all, err
}

// RecordConfig returns the settings of the records part.
func (w *Workspace) RecordConfig() record.Config {
	own := w.Settings.Records
	config := record.Config{Filter: w.ObservationConfig.Filter}
	if own.StaleAfter != nil {
		config.StaleAfter = *own.StaleAfter
	}
	if own.MaxDepth != nil {
		config.MaxDepth = *own.MaxDepth
	}
	return config
}

// maxOpenRecords is the maximum number of records in the context of a new session
// (records §3).
const maxOpenRecords = 5

// OpenRecords returns the section of the context with the OPEN records that the last
// session had active.
func (w *Workspace) OpenRecords(ctx context.Context, s *store.Store, projectID string) (sessionstart.Section, error) {
	section := sessionstart.Section{Title: "Open"}
	if w.ObservationConfig.Limits.Off {
		return section, nil
	}
	refs, err := lookup.New(record.New(s, w.RecordConfig())).LastActive(ctx, record.Caller{Project: projectID}, maxOpenRecords)
	for _, r := range refs {
		section.Lines = append(section.Lines, r.ID+" "+r.Type+": "+r.Title)
	}
	return section, err
}

// ArchiveDir returns the folder that contains the archives, one for each project.
func (w *Workspace) ArchiveDir() string { return filepath.Join(w.Config.Dir, "archive") }

// Now returns the time of the store's clock.
func (w *Workspace) Now() time.Time {
	if w.Config.Clock == nil {
		return time.Now()
	}
	return w.Config.Clock()
}

// Dir returns the data directory.
func (w *Workspace) Dir() string { return w.Config.Dir }
