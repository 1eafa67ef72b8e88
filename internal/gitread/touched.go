package gitread

import (
	"context"
	"strconv"
	"strings"
	"time"

	"cairn/internal/fault"
)

// Touched is a file that a commit changed.
type Touched struct {
	Path string // relative to the root, with slashes
	At   time.Time
}

// maxTouching is the maximum number of commits that Touched reads.
const maxTouching = 500

// Touched returns the files changed since a time by commits of all branches, newest
// commit first. It reads at most 500 commits and ignores merges. It returns nil if there
// are none.
func (r Repository) Touched(ctx context.Context, since time.Time) ([]Touched, error) {
	out, err := r.run(ctx, "log", "--no-show-signature", "--no-decorate", "--no-color", "--no-textconv", "--no-ext-diff", "--no-renames",
		"--name-only", "--format=%x01%ct", "--since="+since.UTC().Format(time.RFC3339), "-n", strconv.Itoa(maxTouching), "--all", "--")
	if err != nil {
		return nil, err
	}
	return readTouched(string(out))
}

// readTouched parses a marked line with the time of each commit, followed by a line for
// each of its files.
func readTouched(out string) (files []Touched, err error) {
	var at time.Time
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		stamp, isCommit := strings.CutPrefix(line, "\x01")
		switch {
		case isCommit:
			seconds, err := strconv.ParseInt(stamp, 10, 64)
			if err != nil {
				return nil, fault.New(fault.Internal, CodeFailed, "cannot parse the output of git log")
			}
			at = time.Unix(seconds, 0).UTC()
		case line != "" && !at.IsZero():
			files = append(files, Touched{unquote(line), at})
		}
	}
	return files, nil
}
