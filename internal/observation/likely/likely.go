package likely

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/observation"
	"cairn/internal/observation/ledger"
	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Args asks which files of a project a session will need.
type Args struct {
	Project project.Project
	Session string // whose own rows do not count, "" for none
	Branch  string // that is checked out, "" if unknown
	Prompt  string // what the user asked, "" if nothing yet
	Limit   int    // most files
}

// File is a file that a session will probably read or change.
type File struct {
	Path        string // its key: relative to the repository, with slashes; without one, the whole path
	Observation int64  // the newest row about it
	Score       float64
	Asked       bool // the prompt says something for it
}

// Likely ranks the project's files by what tells best which of them a session
// goes on to touch, likeliest first, ties the one touched last first. A file that
// was never touched is not named, nor is one of which all rows have expired, swept
// or not. No rows, no files.
//
// The score of a file is the sum of weight·ln(1+x) over what speaks for it, which the
// weights below name.
func Files(ctx context.Context, svc *observation.Service, a Args) (files []File, err error) {
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var words *WordSearch
		if a.Prompt != "" {
			words = &WordSearch{Project: a.Project.Key}
			if err := words.Find(ctx, tx, a.Prompt); err != nil {
				return err
			}
		}
		files, err = Rank(ctx, tx, a, svc.Config.Retention, words)
		return err
	})
	return files, err
}

// Weights of what speaks for a file. Edits and reads count sessions, a session that
// did both only as an edit; words weigh the less the more paths hold them. These are
// round numbers that do well on both halves of a month of real sessions (cairn-bench
// continuity). What did not help is left out: files that change together, the test
// beside a file, directories, the last session's words, identifiers in edits,
// counting every edit.
const (
	weightEdits2      = 1   // edits, halved with every 2 days since the session
	weightEdits30     = 1   // edits, halved with every 30 days
	weightReads7      = 0.5 // reads, halved with every 7 days
	weightBranchEdits = 8   // edits on the same branch (main branches aside)
	weightBranchReads = 4   // reads on the same branch
	weightBranchWords = 2   // words of the branch's name in the path
	weightName        = 10  // 1 if the prompt has the file's name
	weightStem        = 4   // the share, squared, of the name's words that the prompt has
	weightWords       = 2   // words of the prompt in the path
	weightTurns       = 2   // turns that the prompt's rare words find and that touched the file
)

const (
	MaxLikely        = 20   // files that a prompt is answered with
	MaxLikelyAtStart = 40   // files that a session is shown at its start
	likelySample     = 1000 // newest rows of each type that are looked at, and so the bound of the work
)

// FileLines lists files by folder, one line for each, the folder of the likeliest
// first.
func FileLines(files []File, root string) (lines []ledger.Line) {
	byFolder := map[string]int{}
	for _, f := range files {
		folder, name := path.Split(observation.Below(f.Path, root))
		i, ok := byFolder[folder]
		if !ok {
			i = len(lines)
			byFolder[folder] = i
			lead := "- "
			if folder != "" {
				lead = "- " + oneline.Path(folder, ledger.MaxCell) + ": "
			}
			lines = append(lines, ledger.Line{ID: f.Observation, Text: lead + oneline.Cell(name, ledger.MaxCell)})
			continue
		}
		lines[i].Text += ", " + oneline.Cell(name, ledger.MaxCell)
		lines[i].Also = append(lines[i].Also, f.Observation)
	}
	return lines
}

const (
	// All in one text, one entry for each file of a session, the one touched last first:
	// passing thousands of rows on takes longer than finding them. So does parsing the facts
	// of each row, and grouping them with their times, which the statements below find.
	selectTouched = `SELECT ifnull(group_concat(session_key || ' ' || path_key, char(0)), '')
FROM (SELECT DISTINCT session_key, path_key
  FROM (SELECT o.session_key, o.path_key FROM observation_rows o
    WHERE o.project_key = ? AND o.obs_type = ? AND o.timestamp >= ? AND o.path_key IS NOT NULL
      AND o.session_key IS NOT (SELECT key FROM sessions WHERE id = ?)
      AND (instr(o.metadata, '"failed"') + instr(o.metadata, '"interrupted"') = 0
        OR o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL)
    ORDER BY o.timestamp DESC, o.id DESC LIMIT +?))`

	selectLastRows = `SELECT ifnull(group_concat(j.value || ' ' || (SELECT max(timestamp) FROM observation_rows
    WHERE session_key = j.value), char(0)), '') FROM json_each(?) j`

	selectNewestTouches = `SELECT ifnull(group_concat(o.id || ' ' || o.timestamp || ' ' || o.path_key, char(0)), '')
FROM json_each(?1) j CROSS JOIN observation_rows o ON o.id = (SELECT t.id FROM observation_rows t
    WHERE t.project_key = ?2 AND t.path_key = j.value AND +t.obs_type IN ('file_edit', 'file_write', 'file_read')
      AND t.session_key IS NOT (SELECT key FROM sessions WHERE id = ?3)
      AND t.metadata ->> '$.failed' IS NULL AND t.metadata ->> '$.interrupted' IS NULL
    ORDER BY t.timestamp DESC, t.id DESC LIMIT 1)`

	selectBranchSessions = `SELECT session_key FROM session_branches WHERE branch = ?`
)

// Rank is Likely inside a transaction; words are those of the prompt, nil
// without one.
func Rank(ctx context.Context, tx *store.Tx, a Args, keep observation.Retention, words *WordSearch) ([]File, error) {
	r := likelyRanking{now: tx.Now().Unix(), files: map[string]*likelyEvidence{}, sessions: map[int64]*likelySession{}}
	for _, t := range []string{observation.TypeEdit, observation.TypeWrite, observation.TypeRead} {
		if err := r.readTouches(ctx, tx, a, t, keep.Cutoff(t, r.now)); err != nil {
			return nil, err
		}
	}
	if err := r.readSessions(ctx, tx, a.Branch); err != nil {
		return nil, err
	}
	r.weighSessions()
	r.weighWords(a)
	if words != nil {
		if err := r.weighTurns(ctx, tx, words); err != nil {
			return nil, err
		}
	}
	files := r.best(a.Limit)
	return files, r.readNewest(ctx, tx, a, files)
}

// likelyRanking collects what speaks for every file.
type likelyRanking struct {
	now      int64
	files    map[string]*likelyEvidence
	sessions map[int64]*likelySession
}

// likelyEvidence is what speaks for a file, as the weights name it.
type likelyEvidence struct {
	place int   // among all files, the one touched last first, as far as that is known
	at    int64 // the last row of the sessions that touched it; see readNewest

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
		{weightEdits2, e.edits2},
		{weightEdits30, e.edits30},
		{weightReads7, e.reads7},
		{weightBranchEdits, e.branchEdits},
		{weightBranchReads, e.branchReads},
		{weightBranchWords, e.branchWords},
		{weightName, e.name},
		{weightStem, e.stem},
		{weightWords, e.words},
		{weightTurns, e.turns},
	} {
		sum += part.weight * math.Log1p(part.x)
	}
	return sum
}

// likelySession is a session with the files it touched.
type likelySession struct {
	last     int64                    // its latest row
	edited   map[*likelyEvidence]bool // by file; false: only read
	onBranch bool
}

func (r *likelyRanking) readTouches(ctx context.Context, tx *store.Tx, a Args, obsType string, since int64) error {
	return observation.EachNumbered(ctx, tx, func(n [1]int64, file string) error {
		if !observation.IsOutside(file, a.Project.Root) {
			r.touched(file, n[0], obsType != observation.TypeRead)
		}
		return nil
	}, selectTouched, a.Project.Key, obsType, since, a.Session, likelySample)
}

// touched takes in that a session read or edited a file.
func (r *likelyRanking) touched(file string, session int64, edited bool) {
	e := r.files[file]
	if e == nil {
		e = &likelyEvidence{place: len(r.files)}
		r.files[file] = e
	}
	s := r.sessions[session]
	if s == nil {
		s = &likelySession{edited: map[*likelyEvidence]bool{}}
		r.sessions[session] = s
	}
	s.edited[e] = s.edited[e] || edited
}

// readSessions reads when the sessions were last at work, and marks those that worked
// on a branch. Everybody works on the main ones, which therefore tell nothing.
func (r *likelyRanking) readSessions(ctx context.Context, tx *store.Tx, branch string) error {
	keys, err := json.Marshal(slices.Collect(maps.Keys(r.sessions)))
	if err != nil {
		return err
	}
	err = observation.EachNumbered(ctx, tx, func(n [1]int64, last string) (err error) {
		s := r.sessions[n[0]]
		s.last, err = strconv.ParseInt(last, 10, 64)
		for e := range s.edited {
			e.at = max(e.at, s.last)
		}
		return err
	}, selectLastRows, string(keys))
	if err != nil || isMainBranch(branch) {
		return err
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

// readNewest gives files their newest rows and brings those of one score into the order
// of these.
func (r *likelyRanking) readNewest(ctx context.Context, tx *store.Tx, a Args, files []File) error {
	paths := make([]string, len(files))
	for i := range files {
		paths[i] = files[i].Path
	}
	list, err := json.Marshal(paths)
	if err != nil {
		return err
	}
	rows := make(map[string]int64, len(files))
	err = observation.EachNumbered(ctx, tx, func(n [2]int64, file string) error {
		rows[file], r.files[file].at = n[0], n[1]
		return nil
	}, selectNewestTouches, string(list), a.Project.Key, a.Session)
	for i := range files {
		files[i].Observation = rows[files[i].Path]
	}
	r.sort(files)
	return err
}

func isMainBranch(branch string) bool {
	switch branch {
	case "", "main", "master", "trunk", "develop", "HEAD":
		return true
	}
	return false
}

func (r *likelyRanking) weighSessions() {
	for _, s := range r.sessions {
		in2, in7, in30 := observation.Recency(r.now, s.last, 2), observation.Recency(r.now, s.last, 7), observation.Recency(r.now, s.last, 30)
		for e, edited := range s.edited {
			switch {
			case edited:
				e.edits2 += in2
				e.edits30 += in30
				if s.onBranch {
					e.branchEdits++
				}
			default:
				e.reads7 += in7
				if s.onBranch {
					e.branchReads++
				}
			}
		}
	}
}

// weighWords compares the files' names with the branch's and with the prompt.
func (r *likelyRanking) weighWords(a Args) {
	branch := map[string]bool{}
	if !isMainBranch(a.Branch) {
		branch = WordSet(path.Base(a.Branch))
	}
	prompt := WordSet(a.Prompt)
	if len(branch) == 0 && len(prompt) == 0 {
		return
	}
	names := r.names()
	weights := weightsIn(names)
	for file, n := range names {
		e := r.files[file]
		_, e.branchWords = weights.overlap(n, branch)
		e.stem, e.words = weights.overlap(n, prompt)
		e.stem *= e.stem
		if base := path.Base(file); len(base) > 5 && strings.Contains(a.Prompt, base) {
			e.name = 1
		}
	}
}

const (
	maxFound = 100 // rows whose turns are looked at

	selectTurns = `SELECT o.prompt_id, j.key FROM json_each(?) j CROSS JOIN observation_rows o ON o.id = j.value
WHERE o.project_key = ? AND o.prompt_id IS NOT NULL`

	// The plus signs keep SQLite from going through all the project's rows of a type.
	selectTurnFiles = `SELECT ifnull(group_concat(path_key, char(0)), '') FROM (SELECT DISTINCT path_key FROM observation_rows
    WHERE prompt_id = ? AND +project_key = ? AND path_key IS NOT NULL
      AND +obs_type IN ('file_edit', 'file_write', 'file_read')
      AND (instr(metadata, '"failed"') + instr(metadata, '"interrupted"') = 0
        OR metadata ->> '$.failed' IS NULL AND metadata ->> '$.interrupted' IS NULL))`
)

// weighTurns finds the turns in which the rarest of the prompt's words stand and
// counts the files they touched; the best turn counts 1, others in proportion.
func (r *likelyRanking) weighTurns(ctx context.Context, tx *store.Tx, words *WordSearch) error {
	found := words.best(maxFound)
	ids := make([]int64, len(found))
	for i, f := range found {
		ids[i] = f.id
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	turns := map[int64]float64{} // by prompt
	err = tx.Each(ctx, func(rows *sql.Rows) error {
		var prompt int64
		var i int
		err := rows.Scan(&prompt, &i)
		turns[prompt] = max(turns[prompt], found[i].weight/found[0].weight)
		return err
	}, selectTurns, string(list), words.Project)
	if err != nil {
		return err
	}
	for prompt, weight := range turns {
		var files string
		if err := tx.Get(ctx, []any{&files}, selectTurnFiles, prompt, words.Project); err != nil {
			return err
		}
		for file := range strings.SplitSeq(files, "\x00") {
			if e := r.files[file]; e != nil {
				e.turns += weight
			}
		}
	}
	return nil
}

// fileName is a path as words.
type fileName struct{ folders, stem map[string]bool }

func (r *likelyRanking) names() map[string]fileName {
	names := make(map[string]fileName, len(r.files))
	folders := map[string]map[string]bool{}
	for file := range r.files {
		stem := path.Base(file)
		if dot := strings.LastIndexByte(stem, '.'); dot > 0 {
			stem = stem[:dot]
		}
		for _, test := range []string{"_test", ".test", ".spec", "_spec"} {
			stem = strings.TrimSuffix(stem, test)
		}
		dir := path.Dir(file)
		if folders[dir] == nil {
			folders[dir] = WordSet(dir)
		}
		names[file] = fileName{folders[dir], WordSet(stem)}
	}
	return names
}

// wordWeights are what the words of paths count: the less the more paths hold one.
type wordWeights map[string]float64

func weightsIn(names map[string]fileName) wordWeights {
	weights := wordWeights{} // at first how many paths hold a word
	for _, n := range names {
		for w := range n.folders {
			weights[w]++
		}
		for w := range n.stem {
			if !n.folders[w] {
				weights[w]++
			}
		}
	}
	for w, holders := range weights {
		weights[w] = math.Log1p(float64(len(names)) / holders)
	}
	return weights
}

// overlap is how much of a path is among some words: of its stem the share, and of
// all its words their weight, those of folders half, against the root of its length.
func (weights wordWeights) overlap(n fileName, among map[string]bool) (stem, words float64) {
	if len(among) == 0 {
		return 0, 0
	}
	ownFound, own := weights.sums(n.stem, among)
	dirFound, dir := weights.sums(n.folders, among)
	if own > 0 {
		stem = ownFound / own
	}
	if ownFound+dirFound > 0 {
		words = (ownFound + dirFound/2) / math.Sqrt(own+dir/2)
	}
	return stem, words
}

// sums are the weights of words, and of those of them that are among others.
func (weights wordWeights) sums(words, among map[string]bool) (found, all float64) {
	for w := range words {
		all += weights[w]
		if among[w] {
			found += weights[w]
		}
	}
	return found, all
}

// best are the n files with the highest scores.
func (r *likelyRanking) best(n int) []File {
	files := make([]File, 0, len(r.files))
	for file, e := range r.files {
		files = append(files, File{Path: file, Score: e.score(), Asked: e.name+e.stem+e.words+e.turns > 0})
	}
	r.sort(files)
	return files[:min(max(n, 0), len(files))]
}

// sort orders files by score, equal ones by their last touch.
func (r *likelyRanking) sort(files []File) {
	slices.SortFunc(files, func(a, b File) int {
		if order := cmp.Compare(b.Score, a.Score); order != 0 {
			return order
		}
		x, y := r.files[a.Path], r.files[b.Path]
		return cmp.Or(cmp.Compare(y.at, x.at), cmp.Compare(x.place, y.place))
	})
}
