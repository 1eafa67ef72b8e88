package harnesses

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/lazyjson"
	"cairn/internal/regular"
)

// Folder is a place where a harness keeps its transcripts.
type Folder struct {
	Harness string
	Path    string
}

// TranscriptFolders returns the folders, or single files, in which the harnesses keep their
// transcripts (observations §12). It does not read the disk.
func TranscriptFolders(h harness.Homes) (folders []Folder) {
	for _, one := range All() {
		if one.Transcripts == nil {
			continue
		}
		for _, path := range one.Transcripts(h) {
			folders = append(folders, Folder{one.Name, path})
		}
	}
	return folders
}

// TranscriptFiles finds the transcripts of sessions and subagents below a folder, at any depth. It
// returns the files with a harness's name for transcripts. These are *.jsonl except Claude Code's
// internal files, Gemini CLI's session-*.json and logs.json, and those of the other harnesses. It
// skips files that are neither regular files nor links to regular files.
//
// root may also be a file, which is returned whatever its name is. The paths begin with root, with
// its links resolved.
//
// The files are in the best order for an import: by the time of their first dated line, so that
// originals come before their copies. At equal times forks come last, then the path decides. Files
// without a time, because they are unreadable or contain none, come at the end.
//
// If root does not exist, the error is NotFound, code no_transcripts. Unreadable folders do not
// stop the search. They are listed in an Unavailable error, code unreadable_folder, which is
// returned together with the files found. When ctx ends, TranscriptFiles returns ctx.Err() and no
// files.
func TranscriptFiles(ctx context.Context, root string) ([]string, error) {
	// The walk does not follow links, but root may be a link.
	resolved, err := filepath.EvalSymlinks(root)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fault.Wrap(err, fault.NotFound, "no_transcripts", root+": no such file or folder")
		}
		return nil, fault.Wrap(err, fault.Unavailable, "unreadable_folder", root+": cannot be read")
	}
	var files []transcriptFile
	var unreadable []string
	err = filepath.WalkDir(resolved, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case err != nil:
			unreadable = append(unreadable, path)
			return fs.SkipDir
		case entry.IsDir() && entry.Name() == "tool-results":
			return fs.SkipDir
		case entry.IsDir() || path != resolved && !isTranscript(entry.Name()):
			return nil
		case path != resolved && !isRegular(path, entry):
			return nil // a FIFO, a socket, a device, or a link to one or to a missing file
		}
		files = append(files, firstDate(path))
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		unreadable = append(unreadable, resolved)
	}
	slices.SortFunc(files, transcriptFile.compare)
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	if len(unreadable) > 0 {
		return paths, fault.New(fault.Unavailable, "unreadable_folder", "cannot read "+strings.Join(unreadable, ", "))
	}
	return paths, nil
}

// isRegular reports whether an entry is a regular file or a link to one.
func isRegular(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isTranscript(name string) bool {
	return slices.ContainsFunc(All(), func(h harness.Harness) bool { return h.IsTranscript != nil && h.IsTranscript(name) })
}

// transcriptFile is a transcript with the facts that decide its place in the order.
type transcriptFile struct {
	path   string
	first  time.Time // zero if unknown
	forked bool
}

func (f transcriptFile) compare(g transcriptFile) int {
	switch {
	case f.first.IsZero() != g.first.IsZero():
		if f.first.IsZero() {
			return 1
		}
		return -1
	case !f.first.Equal(g.first):
		return f.first.Compare(g.first)
	case f.forked != g.forked:
		if f.forked {
			return 1
		}
		return -1
	}
	return strings.Compare(f.path, g.path)
}

// firstDate returns a transcript with the time of its first dated line. It reads only the
// beginning of the file.
func firstDate(path string) transcriptFile {
	const enough = 1 << 20
	found := transcriptFile{path: path}
	f, err := regular.Open(path)
	if err != nil {
		return found // reading the transcript will return the error
	}
	defer f.Close()
	lines := harness.NewLineReader(io.LimitReader(f, enough), 0)
	check := lazyjson.NewChecker()
	for {
		l, err := lines.Next()
		if err != nil {
			return found
		}
		raw := lazyjson.Trimmed(l.Text)
		if !check.IsObject(raw) {
			continue
		}
		v := raw.Pick("timestamp", "forkedFrom", "payload")
		if at, err := time.Parse(time.RFC3339Nano, v[0].Text()); err == nil {
			found.first = at
			found.forked = v[1].Kind() == '{' || v[2].Get("forked_from_id").Text() != ""
			return found
		}
	}
}

// TranscriptState returns the size and modification time (in nanoseconds) by which a change of a
// transcript is detected. They include the file next to it that contains its newest part, such as a
// database's write-ahead log, if there is one.
func TranscriptState(path string, size, changed int64) (int64, int64) {
	name := filepath.Base(path)
	for _, h := range All() {
		if h.Log == "" || !h.IsTranscript(name) {
			continue
		}
		f, err := regular.Open(path + h.Log)
		if err != nil {
			continue
		}
		info, err := f.Stat()
		_ = f.Close()
		if err == nil {
			size, changed = size+info.Size(), max(changed, info.ModTime().UnixNano())
		}
	}
	return size, changed
}
