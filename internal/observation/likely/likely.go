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

// Args are the arguments of Files and Rank.
type Args struct {
	Project project.Project
	Session string // the calling session, whose own rows do not count; "" for none
	Branch  string // the branch that is checked out, "" if unknown
	Prompt  string // the user's prompt, "" if there is none yet
	Limit   int    // maximum number of files
}

// File is a file that a session will probably read or change.
type File struct {
	Path        string // its key: relative to the repository, with slashes; outside a repository, the absolute path
	Observation int64  // id of the newest row about it
	Score       float64
	Asked       bool // the prompt is part of the evidence for it
}

// Files returns the project's files that the session will most likely touch, likeliest first. Of
// equal scores, the file touched last comes first. Files that were never touched are left out. So
// are files whose rows have all expired, even if the rows have not been swept yet. Without rows,
// Files returns no files. Errors are those of store.Read.
//
// The score of a file is the sum of weight·ln(1+x) over its evidence, with the weights below.
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

// Weights of the evidence. Edits and reads count sessions; a session that did both counts only as
// an edit. A word weighs less the more paths contain it. These are round numbers that do well on
// both halves of a month of real sessions (cairn-bench continuity).
//
// These signals did not help and are left out: files that change together, the test of a file,
// directories, the last session's words, identifiers in edits, and counting every edit.
const (
	weightEdits2      = 1   // edits, with a half-life of 2 days since the session
	weightEdits30     = 1   // edits, with a half-life of 30 days
	weightReads7      = 0.5 // reads, with a half-life of 7 days
	weightBranchEdits = 8   // edits on the same branch, unless it is a main branch
	weightBranchReads = 4   // reads on the same branch
	weightBranchWords = 2   // words of the branch's name in the path
	weightName        = 10  // 1 if the prompt contains the file's name
	weightStem        = 4   // squared share of the file name's words that the prompt contains
	weightWords       = 2   // words of the prompt in the path
	weightTurns       = 2   // turns that contain rare words of the prompt and touched the file
)

const (
	MaxLikely        = 20   // maximum number of files after a prompt
	MaxLikelyAtStart = 40   // maximum number of files at the start of a session
	likelySample     = 1000 // newest rows that are read per type, which bounds the work
)

// FileLines returns one line per folder with its files, the folder of the likeliest file first.
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
	// The result is one text with one entry per file of a session, the file touched last first.
	// Returning thousands of rows takes longer than finding them. Parsing the metadata of each
	// row, or grouping rows with their times, is slow too. The statements below read the times.
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

// Rank is Files inside a transaction. words are the words of the prompt, nil without a prompt.
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

// likelyRanking collects the evidence for every file.
type likelyRanking struct {
	now      int64
	files    map[string]*likelyEvidence
	sessions map[int64]*likelySession
}

// likelyEvidence is the evidence for a file, one value per weight.
type likelyEvidence struct {
	place int   // rank among all files, the file touched last first; approximate across row types
	at    int64 // time of the last row of the sessions that touched it; see readNewest

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

// likelySession is a session and the files that it touched.
type likelySession struct {
	last     int64                    // time of its latest row
	edited   map[*likelyEvidence]bool // by file; false if it was only read
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

// touched records that a session read or edited a file.
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

// readSessions reads the time of each session's last row and marks the sessions on the given
// branch. Main branches are ignored, because every session works on them.
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

// readNewest sets the newest row of each file, and sorts files of equal score by the times of
// these rows.
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

// weighWords compares the files' names with the words of the branch's name and of the prompt.
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
	maxFound = 100 // rows whose turns are read

	selectTurns = `SELECT o.prompt_id, j.key FROM json_each(?) j CROSS JOIN observation_rows o ON o.id = j.value
WHERE o.project_key = ? AND o.prompt_id IS NOT NULL`

	// The plus signs keep SQLite from scanning all of the project's rows of a type.
	selectTurnFiles = `SELECT ifnull(group_concat(path_key, char(0)), '') FROM (SELECT DISTINCT path_key FROM observation_rows
    WHERE prompt_id = ? AND +project_key = ? AND path_key IS NOT NULL
      AND +obs_type IN ('file_edit', 'file_write', 'file_read')
      AND (instr(metadata, '"failed"') + instr(metadata, '"interrupted"') = 0
        OR metadata ->> '$.failed' IS NULL AND metadata ->> '$.interrupted' IS NULL))`
)

// weighTurns finds the turns that contain the rarest words of the prompt, and counts the files
// that they touched. The best turn counts 1, other turns proportionally less.
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
	turns := map[int64]float64{} // weight by id of the turn's prompt
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

// fileName is the words of a path.
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

// wordWeights are the weights of words in paths. A word weighs less the more paths contain it.
type wordWeights map[string]float64

func weightsIn(names map[string]fileName) wordWeights {
	weights := wordWeights{} // first the number of paths that contain each word
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

// overlap returns how much of a path consists of the given words. stem is the share of the file
// name, by weight. words is the weight of all matching words, with folders counting half, divided
// by the square root of the path's total weight.
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

// sums returns the weight of those words that are in among, and the weight of all words.
func (weights wordWeights) sums(words, among map[string]bool) (found, all float64) {
	for w := range words {
		all += weights[w]
		if among[w] {
			found += weights[w]
		}
	}
	return found, all
}

// best returns the n files with the highest scores.
func (r *likelyRanking) best(n int) []File {
	files := make([]File, 0, len(r.files))
	for file, e := range r.files {
		files = append(files, File{Path: file, Score: e.score(), Asked: e.name+e.stem+e.words+e.turns > 0})
	}
	r.sort(files)
	return files[:min(max(n, 0), len(files))]
}

// sort sorts files by score, equal scores by their last touch.
func (r *likelyRanking) sort(files []File) {
	slices.SortFunc(files, func(a, b File) int {
		if order := cmp.Compare(b.Score, a.Score); order != 0 {
			return order
		}
		x, y := r.files[a.Path], r.files[b.Path]
		return cmp.Or(cmp.Compare(y.at, x.at), cmp.Compare(x.place, y.place))
	})
}
