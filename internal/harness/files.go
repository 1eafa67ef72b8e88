package harness

import (
	"bytes"
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
	"cairn/internal/regular"
)

// Folder is where a harness keeps its transcripts.
type Folder struct {
	Harness string
	Path    string
}

// TranscriptFolders returns the folders below which, or files in which, the harnesses keep
// their transcripts (observations §12). Nothing is looked up on disk.
func TranscriptFolders(h Homes) (folders []Folder) {
	for _, one := range Harnesses() {
		if one.Transcripts == nil {
			continue
		}
		for _, path := range one.Transcripts(h) {
			folders = append(folders, Folder{one.Name, path})
		}
	}
	return folders
}

// TranscriptFiles finds the transcripts below a folder, sessions' and
// subagents', at any depth: all *.jsonl files but those which Claude Code writes
// for purposes of its own, and Gemini CLI's session-*.json and logs.json. root may also be a file, which is then taken as one
// whatever its name. The paths begin with root, links in it resolved.
//
// What is not a regular file, nor a link to one, is left out.
//
// They come in the order in which they are best imported: by the time of their
// first dated line, so that what was copied stands before its copies; then those
// marked as a fork last, then by path. Files without a time, because they
// cannot be read or have none, come at the end.
//
// A root that does not exist is NotFound, code no_transcripts. Folders that
// cannot be read do not stop the search: they are in the error, Unavailable, code
// unreadable_folder, which comes next to the files that were found. When ctx ends,
// ctx.Err() is the error, and there are no files.
func TranscriptFiles(ctx context.Context, root string) ([]string, error) {
	// The walk does not follow links, but the root may well be one.
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
			return nil // a FIFO, a socket, a device, or a link that leads to none of the files
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

// isRegular reports whether an entry is a regular file, or a link to one.
func isRegular(path string, entry fs.DirEntry) bool {
	if entry.Type()&fs.ModeSymlink == 0 {
		return entry.Type().IsRegular()
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func isTranscript(name string) bool {
	return slices.ContainsFunc(Harnesses(), func(h Harness) bool { return h.transcript(name) })
}

// isLines reports whether a name is that of a file of lines, except those that Claude Code writes for
// purposes of its own.
func isLines(name string) bool {
	return strings.HasSuffix(name, ".jsonl") && name != "journal.jsonl" && !isHostAgent(agentOfFile(name))
}

// isGeminiFile reports whether a name is that of a session or of the log of prompts of Gemini CLI.
func isGeminiFile(name string) bool {
	return isLines(name) || name == "logs.json" || strings.HasPrefix(name, "session-") && strings.HasSuffix(name, ".json")
}

// transcriptFile is a transcript with what its place in the order depends on.
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

// firstDate reads the beginning of a transcript for its first dated line.
func firstDate(path string) transcriptFile {
	const enough = 1 << 20
	found := transcriptFile{path: path}
	f, err := regular.Open(path)
	if err != nil {
		return found // reading it returns the error
	}
	defer f.Close()
	lines := newLineReader(io.LimitReader(f, enough), 0)
	dec := lenient(nil)
	for {
		l, err := lines.next()
		if err != nil {
			return found
		}
		raw := trimSpace(bytes.TrimPrefix(l.text, []byte(byteOrderMark)))
		if !isObject(dec, raw) {
			continue
		}
		v := pick(raw, "timestamp", "forkedFrom", "payload")
		if at, err := time.Parse(time.RFC3339Nano, text(v[0])); err == nil {
			found.first = at
			found.forked = kindOf(v[1]) == '{' || text(get(v[2], "forked_from_id")) != ""
			return found
		}
	}
}
