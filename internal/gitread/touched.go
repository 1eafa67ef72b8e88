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
	Path string // from the root, with slashes
	At   time.Time
}

// maxTouching is how many commits Touched reads.
const maxTouching = 500

// Touched lists the files that commits since a time changed, of all branches, the
// newest commit first, at most 500 of them; merges change nothing. nil for none.
func (r Repository) Touched(ctx context.Context, since time.Time) ([]Touched, error) {
	out, err := r.run(ctx, "log", "--no-show-signature", "--no-decorate", "--no-color", "--no-textconv", "--no-ext-diff", "--no-renames",
		"--name-only", "--format=%x01%ct", "--since="+since.UTC().Format(time.RFC3339), "-n", strconv.Itoa(maxTouching), "--all", "--")
	if err != nil {
		return nil, err
	}
	return readTouched(string(out))
}

// readTouched reads a line with the time of each commit, marked, and a line for each
// of its files.
func readTouched(out string) (files []Touched, err error) {
	var at time.Time
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		stamp, isCommit := strings.CutPrefix(line, "\x01")
		switch {
		case isCommit:
			seconds, err := strconv.ParseInt(stamp, 10, 64)
			if err != nil {
				return nil, fault.New(fault.Internal, CodeFailed, "git printed a log that cannot be read")
			}
			at = time.Unix(seconds, 0).UTC()
		case line != "" && !at.IsZero():
			files = append(files, Touched{unquote(line), at})
		}
	}
	return files, nil
}
