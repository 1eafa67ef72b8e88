package gitread

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/regular"
)

// Commit is one commit. Times are to the second.
type Commit struct {
	Hash      string // in full
	Author    string
	Authored  time.Time // first creation; rebasing and amending keep it
	Committed time.Time // creation of this commit
	Message   string    // in full
}

// Subject returns the first line of the message.
func (c Commit) Subject() string {
	subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return strings.TrimSpace(subject)
}

// commitFormat prints a commit as five fields that end in zero bytes.
const commitFormat = "--format=%H%x00%an%x00%at%x00%ct%x00%B"

const commitFields = 5

// Blame is the origin of a line.
type Blame struct {
	Hash string // "" for a line that is not committed
	Path string // of the file in that commit, relative to the root, in slashes
	Line int    // in that commit

	Boundary bool // the history ends here: first commit, or shallow clone
}

// Blame returns the commit that wrote a line of a file in the working tree. Lines count
// from 1. Uncommitted changes are included. Commits that only changed the line's white
// space are skipped. path is relative to the root. An unknown file, a missing line and an
// empty repository are CodeFailed, with git's message.
func (r Repository) Blame(ctx context.Context, path string, line int) (Blame, error) {
	list, _, err := r.BlameLines(ctx, path, line, line)
	if err != nil {
		return Blame{}, err
	}
	return list[0], nil
}

// BlameLines is Blame for the lines from first to last, in one call. It also returns the
// commits of these lines by hash; their Message is only the subject.
func (r Repository) BlameLines(ctx context.Context, path string, first, last int) ([]Blame, map[string]Commit, error) {
	// A configured file of commits to ignore would change the result, and a missing one
	// would fail. Only this option removes the setting; an empty name does not.
	out, err := r.run(ctx, "blame", "--porcelain", "--no-textconv", "--no-progress", "--no-ignore-revs-file", "-w",
		"-L", strconv.Itoa(first)+","+strconv.Itoa(last), "--", path)
	if err != nil {
		return nil, nil, err
	}
	list, commits, err := readBlame(out)
	if err == nil && len(list) != last-first+1 {
		err = strangeBlame()
	}
	return list, commits, err
}

func strangeBlame() error {
	return fault.New(fault.Internal, CodeFailed, "cannot parse the output of git blame")
}

// readBlame parses the porcelain output of a blame. Each line of the file begins with the
// commit and the line number there. One property per line follows, then the text after a
// tab. The properties of a commit are printed only with its first line.
func readBlame(out []byte) (list []Blame, commits map[string]Commit, err error) {
	commits = map[string]Commit{}
	known := map[string]Blame{} // properties by hash
	for rest := string(out); rest != ""; {
		var head string
		head, rest, _ = strings.Cut(rest, "\n")
		fields := strings.Fields(head)
		if len(fields) < 3 || !isHash(fields[0]) {
			return nil, nil, strangeBlame()
		}
		b, c := known[fields[0]], commits[fields[0]]
		b.Hash, c.Hash = fields[0], fields[0]
		if b.Line, err = strconv.Atoi(fields[1]); err != nil || b.Line < 1 {
			return nil, nil, strangeBlame()
		}
		for text := false; !text && rest != ""; {
			var fact string
			fact, rest, _ = strings.Cut(rest, "\n")
			text = strings.HasPrefix(fact, "\t")
			b.read(fact)
			c.readFact(fact)
		}
		known[b.Hash], commits[b.Hash] = b, c
		if strings.Trim(b.Hash, "0") == "" {
			b.Hash = ""
		}
		list = append(list, b)
	}
	maps.DeleteFunc(commits, func(hash string, _ Commit) bool { return strings.Trim(hash, "0") == "" })
	if len(list) == 0 {
		return nil, nil, strangeBlame()
	}
	return list, commits, nil
}

// read reads a property: the file's name in the commit, or that history ends there.
func (b *Blame) read(fact string) {
	if name, ok := strings.CutPrefix(fact, "filename "); ok {
		b.Path = unquote(name)
	}
	b.Boundary = b.Boundary || fact == "boundary"
}

// readFact reads a property: author, times or subject. It ignores a time that is not a number.
func (c *Commit) readFact(fact string) {
	name, value, _ := strings.Cut(fact, " ")
	switch name {
	case "author":
		c.Author = strings.ToValidUTF8(value, "�")
	case "summary":
		c.Message = strings.ToValidUTF8(value, "�")
	case "author-time":
		c.Authored = unixTime(value)
	case "committer-time":
		c.Committed = unixTime(value)
	}
}

func unixTime(text string) time.Time {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// maxShallow is the maximum number of bytes read from the list of a shallow clone's oldest
// commits.
const maxShallow = 1 << 20

// IsCutOff reports whether a commit is one of the oldest of a shallow clone. Git
// attributes all older lines to such commits. gitDir is the common git directory.
func IsCutOff(gitDir, hash string) bool {
	list, err := regular.ReadHead(filepath.Join(gitDir, "shallow"), maxShallow)
	return err == nil && strings.Contains(string(list), hash)
}

// isHash reports whether s is a complete object name, SHA-1 or SHA-256.
func isHash(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// unquote decodes a path that git quoted like a C string because of control characters.
func unquote(path string) string {
	if len(path) < 2 || path[0] != '"' || path[len(path)-1] != '"' {
		return path
	}
	plain, err := strconv.Unquote(path)
	if err != nil {
		return path
	}
	return plain
}

// Log returns the commits that changed a file, newest first, across renames. It returns
// at most limit commits, starting at the commit from ("" for HEAD). An unknown path has
// no commits.
func (r Repository) Log(ctx context.Context, path, from string, limit int) ([]Commit, error) {
	if from == "" {
		from = "HEAD"
	}
	out, err := r.run(ctx, "log", "--no-show-signature", "--no-decorate", "--no-color", "--no-textconv", "--no-ext-diff",
		"--no-patch", "--follow", "-z", commitFormat, "-n", strconv.Itoa(limit), "--end-of-options", from, "--", path)
	if err != nil {
		return nil, err
	}
	return readLog(out)
}

// maxNames is the maximum number of earlier names.
const maxNames = 20

// Names returns the earlier names of a file, from the renames in the history of HEAD,
// latest first and at most 20. An unknown path has none.
func (r Repository) Names(ctx context.Context, path string) (names []string, err error) {
	out, err := r.run(ctx, "log", "--no-show-signature", "--no-decorate", "--no-color", "--no-textconv", "--no-ext-diff",
		"--follow", "--diff-filter=R", "--name-status", "-z", "--format=", "--end-of-options", "HEAD", "--", path)
	if err != nil {
		return nil, err
	}
	fields := strings.Split(strings.TrimLeft(string(out), "\x00\n"), "\x00")
	for ; len(fields) >= 3 && len(names) < maxNames; fields = fields[3:] { // score, name before, name after
		names = append(names, fields[1])
	}
	return names, nil
}

// Commit returns the commit with the given name.
func (r Repository) Commit(ctx context.Context, name string) (Commit, error) {
	out, err := r.run(ctx, "log", "--no-show-signature", "--no-decorate", "--no-color", "--no-patch", "-z", commitFormat,
		"-n", "1", "--end-of-options", name, "--")
	if err != nil {
		return Commit{}, err
	}
	list, err := readLog(out)
	if err == nil && len(list) == 0 {
		err = fault.New(fault.NotFound, CodeFailed, "git has no commit "+name)
	}
	if err != nil {
		return Commit{}, err
	}
	return list[0], nil
}

// readLog parses commits printed with commitFormat and -z.
func readLog(out []byte) ([]Commit, error) {
	fields := bytes.Split(out, []byte{0})
	if len(fields) > 0 && len(fields[len(fields)-1]) == 0 {
		fields = fields[:len(fields)-1]
	}
	var list []Commit
	for ; len(fields) >= commitFields; fields = fields[commitFields:] {
		authored, err1 := strconv.ParseInt(string(fields[2]), 10, 64)
		committed, err2 := strconv.ParseInt(string(fields[3]), 10, 64)
		if !isHash(string(fields[0])) || err1 != nil || err2 != nil {
			break
		}
		list = append(list, Commit{
			Hash: string(fields[0]), Author: valid(fields[1]), Message: valid(fields[4]),
			Authored: time.Unix(authored, 0).UTC(), Committed: time.Unix(committed, 0).UTC(),
		})
	}
	if len(fields) != 0 {
		return nil, fault.New(fault.Internal, CodeFailed, "cannot parse the output of git log")
	}
	return list, nil
}

func valid(text []byte) string { return strings.ToValidUTF8(string(text), "�") }
