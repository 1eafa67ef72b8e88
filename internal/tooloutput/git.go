package tooloutput

import (
	"iter"
	"strconv"
	"strings"
)

// maxNewFiles is the maximum number of created files kept of a commit.
const maxNewFiles = 50

// Commit is the output of git commit. Fields that git did not print are zero.
type Commit struct {
	Branch, Hash, Message        string
	Files, Insertions, Deletions *int
	Created                      []string // at most maxNewFiles
}

// ReadCommit parses the standard output of a command that ran git commit. After several commits
// it returns the last one, which is the branch's new head.
func ReadCommit(stdout string) Commit {
	var facts Commit
	for line := range outputLines(stdout) {
		if head, ok := readCommitHead(line); ok {
			facts = head
			continue
		}
		line = strings.TrimLeft(line, " ")
		if path, ok := readCreated(line); ok {
			if len(facts.Created) < maxNewFiles {
				facts.Created = append(facts.Created, path)
			}
		} else if facts.Files == nil && facts.Insertions == nil && facts.Deletions == nil {
			facts.readStat(line)
		}
	}
	return facts
}

// readCommitHead parses `[branch hash] subject`. A root commit has a note after the branch. For a
// detached HEAD the branch is "".
func readCommitHead(line string) (Commit, bool) {
	if !strings.HasPrefix(line, "[") {
		return Commit{}, false
	}
	inside, subject, ok := strings.Cut(line[1:], "] ")
	if !ok {
		inside, ok = strings.CutSuffix(line[1:], "]")
	}
	space := strings.LastIndexByte(inside, ' ')
	if !ok || space < 0 || !isHash(inside[space+1:]) {
		return Commit{}, false
	}
	facts := Commit{Hash: inside[space+1:], Message: strings.TrimSpace(subject)}
	branch := strings.TrimSuffix(inside[:space], " (root-commit)")
	if branch == "detached HEAD" {
		return facts, true
	}
	facts.Branch = branch
	return facts, branch != "" && !strings.Contains(branch, " ")
}

// readCreated parses `create mode 100644 path`. git quotes unusual paths like C strings.
func readCreated(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "create mode ")
	if !ok {
		return "", false
	}
	mode, path, ok := strings.Cut(rest, " ")
	if !ok || path == "" || len(mode) != 6 || strings.Trim(mode, "01234567") != "" {
		return "", false
	}
	if plain, err := strconv.Unquote(path); err == nil && path[0] == '"' {
		path = plain
	}
	return path, true
}

// readStat parses the line with the numbers of files, insertions and deletions, each of which may
// be missing. It ignores any other line.
func (f *Commit) readStat(line string) {
	var files, insertions, deletions *int
	if line == "" || line[0] < '0' || line[0] > '9' {
		return
	}
	for part := range strings.SplitSeq(line, ", ") {
		number, what, _ := strings.Cut(part, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return
		}
		switch what {
		case "file changed", "files changed":
			files = &n
		case "insertion(+)", "insertions(+)":
			insertions = &n
		case "deletion(-)", "deletions(-)":
			deletions = &n
		default:
			return
		}
	}
	f.Files, f.Insertions, f.Deletions = files, insertions, deletions
}

// Push is the output of git push. Fields that git did not print are "".
type Push struct {
	Remote    string // as printed
	HashRange string // old..new, old...new if forced
	Branch    string // on the remote
}

// ReadPush parses the output of a command that ran git push: the remote, and the first ref that
// the remote accepted.
func ReadPush(output string) Push {
	var facts Push
	url := ""
	for line := range outputLines(output) {
		if to, ok := strings.CutPrefix(line, "To "); ok {
			url = to
			continue
		}
		if strings.HasPrefix(line, "From ") { // a fetch lists refs in the same format
			url = ""
		}
		if url == "" {
			continue
		}
		hashRange, branch, taken, ok := readRef(line)
		if !ok {
			continue
		}
		if facts.Remote == "" || taken {
			facts.Remote = url
		}
		if taken {
			facts.HashRange, facts.Branch = hashRange, branch
			return facts
		}
	}
	return facts
}

// readRef parses one line of a push's report: a flag, the result, and the refs `from -> to`, or
// one ref for a deletion. taken is false if the remote rejected the ref or already had it.
func readRef(line string) (hashRange, branch string, taken, ok bool) {
	if !strings.HasPrefix(line, " ") {
		return "", "", false, false
	}
	line = strings.TrimLeft(line, " ")
	taken = true
	if len(line) > 2 && line[1] == ' ' && strings.IndexByte("+*-=!", line[0]) >= 0 {
		taken = line[0] != '!' && line[0] != '='
		line = strings.TrimLeft(line[2:], " ")
	}
	var refs string
	if strings.HasPrefix(line, "[") {
		_, refs, ok = strings.Cut(line, "]")
	} else {
		hashRange, refs, ok = strings.Cut(line, " ")
		ok = ok && isHashRange(hashRange)
	}
	if i := strings.Index(refs, " ("); i >= 0 { // the reason
		refs = refs[:i]
	}
	if _, to, two := strings.Cut(refs, " -> "); two {
		refs = to
	}
	branch = strings.TrimPrefix(strings.TrimSpace(refs), "refs/heads/")
	if !ok || branch == "" || strings.Contains(branch, " ") {
		return "", "", false, false
	}
	return hashRange, branch, taken, true
}

func isHashRange(s string) bool {
	from, to, ok := strings.Cut(s, "..")
	return ok && isHash(from) && isHash(strings.TrimPrefix(to, "."))
}

// isHash reports whether s is an object name as git prints it, abbreviated or full.
func isHash(s string) bool {
	return len(s) >= 7 && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// outputLines yields the non-empty lines of a program's output. A carriage return ends a line,
// too, because progress is reprinted on the same line.
func outputLines(output string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for output != "" {
			end := strings.IndexAny(output, "\r\n")
			if end < 0 {
				yield(output)
				return
			}
			if end > 0 && !yield(output[:end]) {
				return
			}
			output = output[end+1:]
		}
	}
}
