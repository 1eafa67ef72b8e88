package cairn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cairn/internal/copies"
	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/memory/memories"
	"cairn/internal/observation"
	"cairn/internal/observation/capture"
	"cairn/internal/regular"
	"cairn/internal/store"
	"cairn/internal/workspace"
)

// ImportArgs are the options of an import.
type ImportArgs struct {
	Paths   []string  // files and folders
	Since   time.Time // only events since this time; zero for all
	Project string    // only this project's events; "" for all
	DryRun  bool      // only count, in a copy of the store

	IncludePurged bool // also store purged rows
	Merge         bool // also import diverged records, next to the existing ones

	// Progress, if set, is called after each file with the number of processed files.
	Progress func(done, files int)

	// LineProgress, if set, is called with the number of processed lines of a cairn export.
	LineProgress func(done, lines int)
}

// ImportReport is the result of an import.
type ImportReport struct {
	Files     int   `json:"files"`     // read
	Unchanged int   `json:"unchanged"` // skipped, because they have not changed
	Lines     int   `json:"lines"`
	Bytes     int64 `json:"bytes"`
	capture.Imported
	ByHarness  map[string]int    `json:"by_harness"` // files read
	Skipped    map[string]int    `json:"skipped"`    // lines and calls, by reason
	Unreadable []UnreadableFile  `json:"unreadable"`
	Restored   []copies.Imported `json:"restored,omitempty"` // cairn's own exports
	Seconds    float64           `json:"seconds"`
}

// UnreadableFile is a file that could not be imported.
type UnreadableFile struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// Import reads transcripts into the store, oldest first. It is idempotent and safe to
// retry after an interruption: committed rows stay, and the rest is read again. An
// unreadable file is reported, and the other files are imported (observations §12).
//
// Files of `cairn export` among the paths are imported first; see copies.Importer. They are
// imported completely, so Since and Project are Invalid with them.
func (c *Cairn) Import(ctx context.Context, a ImportArgs) (ImportReport, error) {
	began := time.Now()
	r := ImportReport{
		Imported:  capture.Imported{ByType: map[string]int{}},
		ByHarness: map[string]int{}, Skipped: map[string]int{}, Unreadable: []UnreadableFile{},
	}
	exports, others := splitExports(a.Paths)
	if len(exports) > 0 && (!a.Since.IsZero() || a.Project != "") {
		return r, fault.New(fault.Invalid, "invalid_argument", "--since and --project cannot be combined with a cairn export, which is imported completely")
	}
	files, err := r.files(ctx, others)
	if err != nil {
		return r, err
	}
	s, done, err := c.importStore(ctx, a.DryRun)
	if err != nil {
		return r, err
	}
	for _, path := range exports {
		imported, err := c.exportImporter(s, a).Import(ctx, path)
		if err != nil {
			return r, errors.Join(fmt.Errorf("%s: %w", filepath.Base(path), err), done())
		}
		r.Restored = append(r.Restored, imported)
	}
	if len(others) > 0 {
		err = r.importAll(ctx, c.ObservationsOver(s), files, a)
	}
	if err == nil && !a.DryRun {
		_, err = c.ObservationsOver(s).IndexTurns(ctx, math.MaxInt)
	}
	r.Seconds = time.Since(began).Seconds()
	return r, errors.Join(err, done())
}

// splitExports separates files of `cairn export` from all other paths.
func splitExports(paths []string) (exports, others []string) {
	for _, p := range paths {
		if copies.IsExport(p) {
			exports = append(exports, p)
		} else {
			others = append(others, p)
		}
	}
	return exports, others
}

func (c *Cairn) exportImporter(s *store.Store, a ImportArgs) copies.Importer {
	return copies.Importer{
		Store: s, Observations: c.ObservationsOver(s), Memories: memories.New(s, memoryConfig(&c.Settings.Work, c.ObservationConfig.Filter)), Filter: c.ObservationConfig.Filter, Archive: workspace.MailArchive(),
		IncludePurged: a.IncludePurged, Merge: a.Merge, Progress: a.LineProgress,
	}
}

// importStore returns the store to import into. For a dry run it is a copy, which done
// deletes.
func (c *Cairn) importStore(ctx context.Context, dryRun bool) (s *store.Store, done func() error, err error) {
	if !dryRun {
		s, err = c.Store(ctx)
		return s, func() error { return nil }, err
	}
	dir, err := os.MkdirTemp("", "cairn-dry-run-")
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "cairn.db")
	s, err = c.Opened(ctx, false)
	if err == nil && s != nil {
		err = s.CopyTo(ctx, path)
	}
	if err == nil {
		s, err = store.Open(ctx, store.Config{Path: path, Key: c.Key(), Clock: c.Config.Clock, Temporary: true})
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }, nil
}

// files returns the transcripts below the paths, for each path the oldest session first. A
// missing path counts as an unreadable file. If ctx ends, it returns ctx.Err().
func (r *ImportReport) files(ctx context.Context, paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		found, err := harnesses.TranscriptFiles(ctx, abs)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			r.unreadable(abs, err)
		}
		out = append(out, found...)
	}
	return out, nil
}

func (r *ImportReport) unreadable(path string, err error) {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	r.Unreadable = append(r.Unreadable, UnreadableFile{path, err.Error()})
}

// readAhead is the number of transcripts that are decoded and redacted in advance.
const readAhead = 4

// importAll decodes several files concurrently. It stores them in order, so that the first
// source of a row is the same in every import.
func (r *ImportReport) importAll(ctx context.Context, j *observation.Service, files []string, a ImportArgs) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	roots, err := capture.Roots(ctx, j)
	if err != nil {
		return err
	}
	readings := make(chan *transcriptReader, readAhead)
	go func() {
		defer close(readings)
		for _, path := range files {
			f := &transcriptReader{path: path, roots: roots, whole: a.IncludePurged, events: make(chan capture.Prepared, 256)}
			select {
			case readings <- f:
				go f.run(ctx, j)
			case <-ctx.Done():
				return
			}
		}
	}()
	options := capture.ImportOptions{Since: a.Since, Project: a.Project, IncludePurged: a.IncludePurged}
	importer := capture.NewImporter(j, options)
	done := r.Unchanged + len(r.Unreadable)
	for f := range readings {
		if err := r.store(ctx, importer, f); err != nil {
			return err
		}
		if done++; a.Progress != nil {
			a.Progress(done, len(files))
		}
	}
	return ctx.Err()
}

// transcriptReader reads one transcript and prepares its events for the store.
type transcriptReader struct {
	path   string
	roots  []string // root folders of known projects
	whole  bool     // also read the part that an earlier import has read
	events chan capture.Prepared

	// Set before events is closed.
	file      capture.ImportedFile
	report    harness.TranscriptReport
	unchanged bool
	err       error
}

func (f *transcriptReader) run(ctx context.Context, j *observation.Service) {
	defer close(f.events)
	f.err = f.read(ctx, j)
}

func (f *transcriptReader) read(ctx context.Context, j *observation.Service) error {
	file, err := regular.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	last, known, err := capture.FindImportedFile(ctx, j, f.path)
	if err != nil {
		return err
	}
	f.file = capture.ImportedFile{Path: f.path}
	f.file.Size, f.file.MTime = harnesses.TranscriptState(f.path, info.Size(), info.ModTime().UnixNano())
	switch {
	case f.whole:
	case known && last.Size == f.file.Size && last.MTime == f.file.MTime:
		f.unchanged = true
		return nil
	case known && last.Size <= f.file.Size:
		f.file.Offset = last.Offset
	}
	if _, err := file.Seek(f.file.Offset, 0); err != nil {
		return err
	}
	options := harness.TranscriptOptions{Path: f.path, Offset: f.file.Offset, ModTime: info.ModTime(), Roots: f.roots}
	if options.Offset > 0 {
		options.Head = io.NewSectionReader(file, 0, options.Offset)
	}
	preparer := capture.NewPreparer(j)
	f.report, err = harnesses.ReadTranscript(ctx, file, options, func(e observation.Event) error {
		p, err := preparer.Prepare(e)
		if err != nil {
			return err
		}
		select {
		case f.events <- p:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	f.file.Offset = f.report.Resume
	return err
}

// store stores the events of one transcript.
func (r *ImportReport) store(ctx context.Context, importer *capture.Importer, f *transcriptReader) error {
	for p := range f.events {
		if err := importer.Add(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(f.path), err)
		}
	}
	if f.unchanged {
		r.Unchanged++
		return nil
	}
	if f.err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fault.KindOf(f.err) == fault.Unavailable {
			return f.err
		}
		r.unreadable(f.path, f.err)
	}
	counts, err := importer.EndFile(ctx, f.file, f.err == nil)
	if err != nil {
		return err
	}
	r.Files++
	if f.report.Harness != "" {
		r.ByHarness[f.report.Harness]++
	}
	r.Lines += f.report.Lines
	r.Bytes += f.report.Bytes
	r.Add(counts)
	for why, n := range f.report.Skipped {
		r.Skipped[why] += n
	}
	return nil
}

// Types returns the types of the added rows, most frequent first.
func (r *ImportReport) Types() []string {
	return slices.SortedFunc(maps.Keys(r.ByType), func(a, b string) int {
		if n := r.ByType[b] - r.ByType[a]; n != 0 {
			return n
		}
		return slices.Compare([]byte(a), []byte(b))
	})
}
