package observation

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"cairn/internal/project"
	"cairn/internal/store"
	"cairn/internal/words"
)

// LikelyArgs asks which files of a project a session will need.
type LikelyArgs struct {
	Project project.Project
	Session string // whose own rows do not count, "" for none
	Branch  string // that is checked out, "" if unknown
	Prompt  string // what the user asked, "" if nothing yet
	Limit   int    // most files
}

// LikelyFile is a file that a session will probably read or change.
type LikelyFile struct {
	Path        string // its key: relative to the repository, with slashes
	Observation int64  // the newest row about it
	Score       float64
	Asked       bool // the prompt says something for it
}

// Likely ranks the project's files by what tells best which of them a session
// goes on to touch, likeliest first, ties the one touched last first. A file that
// was never touched is not named. No rows, no files.
//
// The score of a file is a sum of logarithms, ln(1+x), of what speaks for it:
//
//	1·edits    of sessions, halved with every 2 days since the session
//	1·edits    of sessions, halved with every 30 days
//	½·reads    of sessions that did not edit it, halved with every 7 days
//	8·edits    of sessions on the same branch (main branches aside)
//	4·reads    of sessions on the same branch that did not edit it
//	2·words    of the branch's name in its path
//	10·name    1 if the prompt has its name or path
//	4·stem     the share, squared, of its name's words that the prompt has
//	2·words    of the prompt in its path
//	2·turns    that the prompt's rare words find and that touched it
//
// where edits and reads count sessions, and words weigh the less the more paths
// hold them. Weights were chosen on the first half of a month of real sessions
// and tried on the second (cairn-bench continuity); what did not help is left
// out: files that change together, the test beside a file, directories, the last
// session's words, counting every edit.
func (j *Journal) Likely(ctx context.Context, a LikelyArgs) (files []LikelyFile, err error) {
	err = j.read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var words *wordSearch
		if a.Prompt != "" {
			words = &wordSearch{project: a.Project.Key}
			if err := words.find(ctx, tx, a.Prompt); err != nil {
				return err
			}
		}
		files, err = likely(ctx, tx, a, words)
		return err
	})
	return files, err
}

// maxLikely is how many files a session is told of.
const maxLikely = 20

// fileLines lists files by folder, one line for each, the folder of the likeliest
// first.
func fileLines(files []LikelyFile) (lines []contextRow) {
	byFolder := map[string]int{}
	for _, f := range files {
		folder, name := path.Split(f.Path)
		i, ok := byFolder[folder]
		if !ok {
			i = len(lines)
			byFolder[folder] = i
			lead := "- "
			if folder != "" {
				lead = "- " + pathCell(folder, maxCell) + ": "
			}
			lines = append(lines, contextRow{id: f.Observation, line: lead + cell(name, maxCell)})
			continue
		}
		lines[i].line += ", " + cell(name, maxCell)
		lines[i].also = append(lines[i].also, f.Observation)
	}
	return lines
}

// likelySample is how many of the newest rows of each type are looked at, and
// so the bound of the work.
const likelySample = 1000

const (
	selectTouched = `SELECT o.id, o.timestamp, o.session_key, o.path_key FROM observation_rows o
WHERE o.project_key = ? AND o.obs_type = ? AND o.path_key IS NOT NULL
  AND o.session_key IS NOT (SELECT key FROM sessions WHERE id = ?)
  AND o.metadata ->> '$.failed' IS NULL
ORDER BY o.timestamp DESC, o.id DESC LIMIT ?`

	selectBranchSessions = `SELECT session_key FROM session_branches WHERE branch = ?`
)

// likely is Likely inside a transaction; words are those of the prompt, nil
// without one.
func likely(ctx context.Context, tx *store.Tx, a LikelyArgs, words *wordSearch) ([]LikelyFile, error) {
	r := likelyRanking{now: tx.Now().Unix(), files: map[string]*likelyEvidence{}, sessions: map[int64]*likelySession{}}
	for _, t := range []string{typeEdit, typeWrite, typeRead} {
		if err := r.readTouches(ctx, tx, a, t); err != nil {
			return nil, err
		}
	}
	if err := r.readBranch(ctx, tx, a.Branch); err != nil {
		return nil, err
	}
	r.weighSessions()
	r.weighWords(a)
	if words != nil {
		if err := r.weighTurns(ctx, tx, words); err != nil {
			return nil, err
		}
	}
	return r.best(a.Limit), nil
}

// likelyRanking collects what speaks for every file.
type likelyRanking struct {
	now      int64
	files    map[string]*likelyEvidence
	sessions map[int64]*likelySession
}

// likelyEvidence is what speaks for a file; each of it counts by its logarithm.
type likelyEvidence struct {
	newest int64 // row
	at     int64

	edits2, edits30, reads7 float64
	branchEdits             float64
	branchReads             float64
	branchWords             float64
	name, stem, words       float64
	turns                   float64
}

func (e *likelyEvidence) score() float64 {
	sum := 0.0
	for _, part := range [...]struct{ weight, x float64 }{
		{1, e.edits2},
		{1, e.edits30},
		{0.5, e.reads7},
		{8, e.branchEdits},
		{4, e.branchReads},
		{2, e.branchWords},
		{10, e.name},
		{4, e.stem},
		{2, e.words},
		{2, e.turns},
	} {
		sum += part.weight * math.Log1p(part.x)
	}
	return sum
}

// likelySession is a session with the files it touched.
type likelySession struct {
	last     int64           // its latest touch
	edited   map[string]bool // false: only read
	onBranch bool
}

func (r *likelyRanking) readTouches(ctx context.Context, tx *store.Tx, a LikelyArgs, obsType string) error {
	return tx.Each(ctx, func(rows *sql.Rows) error {
		var id, at, session int64
		var file string
		if err := rows.Scan(&id, &at, &session, &file); err != nil || isOutside(file) {
			return err
		}
		e := r.files[file]
		if e == nil {
			e = &likelyEvidence{}
			r.files[file] = e
		}
		if at > e.at || at == e.at && id > e.newest {
			e.at, e.newest = at, id
		}
		s := r.sessions[session]
		if s == nil {
			s = &likelySession{edited: map[string]bool{}}
			r.sessions[session] = s
		}
		s.last = max(s.last, at)
		s.edited[file] = s.edited[file] || obsType != typeRead
		return nil
	}, selectTouched, a.Project.Key, obsType, a.Session, likelySample)
}

// isOutside tells the key of a file outside the repository.
func isOutside(key string) bool {
	return strings.HasPrefix(key, "/") || len(key) > 1 && key[1] == ':'
}

// readBranch marks the sessions that worked on a branch. Everybody works on the
// main ones, which therefore tell nothing.
func (r *likelyRanking) readBranch(ctx context.Context, tx *store.Tx, branch string) error {
	if isMainBranch(branch) {
		return nil
	}
	return tx.Each(ctx, func(rows *sql.Rows) error {
		var key int64
		err := rows.Scan(&key)
		if s := r.sessions[key]; s != nil {
			s.onBranch = true
		}
		return err
	}, selectBranchSessions, branch)
}

func isMainBranch(branch string) bool {
	switch branch {
	case "", "main", "master", "trunk", "develop", "HEAD":
		return true
	}
	return false
}

func (r *likelyRanking) weighSessions() {
	const day = 24 * 60 * 60
	for _, s := range r.sessions {
		age := float64(max(r.now-s.last, 0)) / day
		for file, edited := range s.edited {
			e := r.files[file]
			switch {
			case edited:
				e.edits2 += math.Exp2(-age / 2)
				e.edits30 += math.Exp2(-age / 30)
				if s.onBranch {
					e.branchEdits++
				}
			default:
				e.reads7 += math.Exp2(-age / 7)
				if s.onBranch {
					e.branchReads++
				}
			}
		}
	}
}

// weighWords compares the files' names with the branch's and with the prompt.
func (r *likelyRanking) weighWords(a LikelyArgs) {
	branch := map[string]bool{}
	if !isMainBranch(a.Branch) {
		branch = wordSet(path.Base(a.Branch))
	}
	prompt := wordSet(a.Prompt)
	if len(branch) == 0 && len(prompt) == 0 {
		return
	}
	names := r.names()
	holders := map[string]float64{} // paths that hold a word
	for _, n := range names {
		for w := range n.all() {
			holders[w]++
		}
	}
	weigh := func(words, among map[string]bool) (found, all float64) {
		for w := range words {
			weight := math.Log1p(float64(len(names)) / holders[w])
			all += weight
			if among[w] {
				found += weight
			}
		}
		return found, all
	}
	overlap := func(n fileName, among map[string]bool) (stem, words float64) {
		ownFound, own := weigh(n.stem, among)
		dirFound, dir := weigh(n.folders, among)
		if own > 0 {
			stem = ownFound / own
		}
		if ownFound+dirFound > 0 {
			words = (ownFound + dirFound/2) / math.Sqrt(own+dir/2)
		}
		return stem, words
	}
	for file, n := range names {
		e := r.files[file]
		_, e.branchWords = overlap(n, branch)
		e.stem, e.words = overlap(n, prompt)
		e.stem *= e.stem
		if base := path.Base(file); len(base) > 5 && strings.Contains(a.Prompt, base) {
			e.name = 1
		}
	}
}

const (
	maxFound = 100 // rows whose turns are looked at

	selectTurn = `SELECT o.prompt_id FROM observation_rows o
WHERE o.id = ? AND o.project_key = ? AND o.prompt_id IS NOT NULL`

	selectTurnFiles = `SELECT DISTINCT path_key FROM observation_rows
WHERE prompt_id = ? AND project_key = ? AND path_key IS NOT NULL
  AND obs_type IN ('file_edit', 'file_write', 'file_read') AND metadata ->> '$.failed' IS NULL`
)

// weighTurns finds the turns in which the rarest of the prompt's words stand and
// counts the files they touched; the best turn counts 1, others in proportion.
func (r *likelyRanking) weighTurns(ctx context.Context, tx *store.Tx, words *wordSearch) error {
	turns := map[int64]float64{} // by prompt
	found := words.best(maxFound)
	for _, f := range found {
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			var prompt int64
			err := rows.Scan(&prompt)
			turns[prompt] = max(turns[prompt], f.weight/found[0].weight)
			return err
		}, selectTurn, f.id, words.project)
		if err != nil {
			return err
		}
	}
	for prompt, weight := range turns {
		err := tx.Each(ctx, func(rows *sql.Rows) error {
			var file string
			err := rows.Scan(&file)
			if e := r.files[file]; e != nil {
				e.turns += weight
			}
			return err
		}, selectTurnFiles, prompt, words.project)
		if err != nil {
			return err
		}
	}
	return nil
}

// fileName is a path as words.
type fileName struct{ folders, stem map[string]bool }

func (n fileName) all() map[string]bool {
	words := maps.Clone(n.folders)
	maps.Copy(words, n.stem)
	return words
}

func (r *likelyRanking) names() map[string]fileName {
	names := make(map[string]fileName, len(r.files))
	for file := range r.files {
		stem := path.Base(file)
		if dot := strings.LastIndexByte(stem, '.'); dot > 0 {
			stem = stem[:dot]
		}
		for _, test := range []string{"_test", ".test", ".spec", "_spec"} {
			stem = strings.TrimSuffix(stem, test)
		}
		names[file] = fileName{wordSet(path.Dir(file)), wordSet(stem)}
	}
	return names
}

// wordSet is the words of a text, identifiers taken apart, in small letters and
// without common endings; single characters and the commonest English words are
// left out.
func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	words.Each(text, func(_ string, parts []string) {
		for _, p := range parts {
			if w := strings.ToLower(p); len(w) > 1 && !isStopWord(w) {
				set[withoutEnding(w)] = true
			}
		}
	})
	return set
}

func isStopWord(w string) bool {
	const stopWords = " the an and or to of in is it that this for on with be we you can do not are as at by from if so" +
		" have has was will what when how there here but my our your they them its let lets please just also now" +
		" should would could which than then some all any into out up about "
	return strings.Contains(stopWords, " "+w+" ")
}

// withoutEnding makes one word of most forms of an English one.
func withoutEnding(w string) string {
	for _, ending := range [...]string{"ings", "ing", "ies", "ed", "es", "s", "e", "y"} {
		if stem, ok := strings.CutSuffix(w, ending); ok && len(stem) >= 3 {
			return stem
		}
	}
	return w
}

// best are the n files with the highest scores.
func (r *likelyRanking) best(n int) []LikelyFile {
	files := make([]LikelyFile, 0, len(r.files))
	for file, e := range r.files {
		files = append(files, LikelyFile{file, e.newest, e.score(), e.name+e.stem+e.words+e.turns > 0})
	}
	slices.SortFunc(files, func(a, b LikelyFile) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(r.files[b.Path].at, r.files[a.Path].at), cmp.Compare(a.Path, b.Path))
	})
	return files[:min(max(n, 0), len(files))]
}
