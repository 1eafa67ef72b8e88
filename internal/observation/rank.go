package observation

import (
	"container/heap"
	"context"
	"database/sql"
	"math"

	"cairn/internal/store"
)

// RecencyDays is the half-life of the recency signal in days (observations §8.4).
const RecencyDays = 7

// Recency returns a score that halves with every halfLife days of age. A future time counts as
// now.
func Recency(now, at int64, halfLife float64) float64 {
	const day = 24 * 60 * 60
	return math.Exp2(-float64(max(now-at, 0)) / (halfLife * day))
}

// ToolWeight returns the type signal for the tool recent_context.
func ToolWeight(obsType string) float64 {
	switch obsType {
	case TypeEdit:
		return 1
	case TypeCommand:
		return 0.67
	case TypeCompact:
		return 0.5
	case TypeMCP:
		return 0.33
	}
	return 0.17
}

// ContextWeight returns the type signal for the injected context (observations §9.1).
func ContextWeight(obsType string) float64 {
	switch obsType {
	case TypeMarker:
		return 1
	case TypeGitCommit:
		return 0.9
	case TypeCommandError:
		return 0.8
	case TypeGitPush:
		return 0.6
	case TypeGitHub, TypeSpawn:
		return 0.33
	}
	return ToolWeight(obsType)
}

// Ranked is one row of a ranking.
type Ranked struct {
	Id        int64
	Timestamp int64
	Path      string // path_key, "" without one
	tool      string // tool_name, "" without one
	project   int64
	Score     float64
}

// lane contains the rows of one type in one project, newest first. Within a lane the score
// decreases with age, so merging lanes is exact and needs no scan.
type lane struct {
	project int64
	obsType string
	rows    []Ranked // rows read ahead, best first
	more    bool     // there may be older rows
}

// Ranking merges lanes into one descending order.
type Ranking struct {
	lanes []*lane
	seen  map[rankedFile]bool // files that Take has returned
	score func(project int64, obsType string, at int64) float64
	Skip  func(obsType, tool string) bool // rows to leave out; nil: none
}

const (
	selectLaneHeads = `SELECT o.project_key, o.obs_type, o.id, o.timestamp, ifnull(o.path_key, ''), ifnull(o.tool_name, '')
FROM projects p, json_each(?) t
JOIN observation_rows o ON o.id = (SELECT i.id FROM observation_rows i
    WHERE i.project_key = p.key AND i.obs_type = t.value ORDER BY i.timestamp DESC, i.id DESC LIMIT 1)
WHERE (p.key = ?) + ? != 1`

	selectLane = `SELECT id, timestamp, ifnull(path_key, ''), ifnull(tool_name, '') FROM observation_rows
WHERE project_key = ? AND obs_type = ? AND (timestamp, id) < (?, ?)
ORDER BY timestamp DESC, id DESC LIMIT +?`

	laneAhead = 64
)

// Lanes selects the projects whose lanes a ranking uses.
type Lanes struct {
	Project int64
	Mode    int // LaneOnly, LaneOthers or LaneAll
}

// selectLaneHeads adds the value to (p.key = project). A sum of 1 leaves a project out.
const (
	LaneOthers = 0 // the sum is 1 for the project itself
	LaneOnly   = 1 // the sum is 1 for all other projects
	LaneAll    = 2 // the sum is never 1
)

func NewRanking(ctx context.Context, tx *store.Tx, s Lanes, typesJSON string,
	score func(project int64, obsType string, at int64) float64,
) (*Ranking, error) {
	r := &Ranking{score: score, seen: map[rankedFile]bool{}}
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		l := &lane{more: true}
		var row Ranked
		err := rows.Scan(&l.project, &l.obsType, &row.Id, &row.Timestamp, &row.Path, &row.tool)
		row.project, row.Score = l.project, score(l.project, l.obsType, row.Timestamp)
		l.rows = append(l.rows, row)
		r.lanes = append(r.lanes, l)
		return err
	}, selectLaneHeads, typesJSON, s.Project, s.Mode)
	heap.Init(r)
	return r, err
}

// rankedFile is a file of a project.
type rankedFile struct {
	project int64
	path    string
}

// Take returns the next n best rows, one per project and path, best first. Further calls
// continue after them.
func (r *Ranking) Take(ctx context.Context, tx *store.Tx, n int) ([]Ranked, error) {
	var out []Ranked
	for len(out) < n && len(r.lanes) > 0 {
		best := r.lanes[0].rows[0]
		skipped := r.Skip != nil && r.Skip(r.lanes[0].obsType, best.tool)
		if err := r.advance(ctx, tx); err != nil {
			return nil, err
		}
		f := rankedFile{best.project, best.Path}
		if skipped || best.Path != "" && r.seen[f] {
			continue
		}
		r.seen[f] = true
		out = append(out, best)
	}
	return out, nil
}

// advance drops the best row and restores the order.
func (r *Ranking) advance(ctx context.Context, tx *store.Tx) error {
	l := r.lanes[0]
	last := l.rows[0]
	l.rows = l.rows[1:]
	if len(l.rows) == 0 && l.more {
		if err := r.refill(ctx, tx, l, last); err != nil {
			return err
		}
	}
	if len(l.rows) == 0 {
		heap.Pop(r)
		return nil
	}
	heap.Fix(r, 0)
	return nil
}

func (r *Ranking) refill(ctx context.Context, tx *store.Tx, l *lane, last Ranked) error {
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		row := Ranked{project: l.project}
		err := rows.Scan(&row.Id, &row.Timestamp, &row.Path, &row.tool)
		row.Score = r.score(l.project, l.obsType, row.Timestamp)
		l.rows = append(l.rows, row)
		return err
	}, selectLane, l.project, l.obsType, last.Timestamp, last.Id, laneAhead)
	l.more = len(l.rows) == laneAhead
	return err
}

// Len, Less, Swap, Push and Pop order the lanes for container/heap: the highest
// score first, ties newest first.
func (r *Ranking) Len() int { return len(r.lanes) }

func (r *Ranking) Less(i, k int) bool {
	a, b := r.lanes[i].rows[0], r.lanes[k].rows[0]
	if a.Score != b.Score {
		return a.Score > b.Score
	}
	if a.Timestamp != b.Timestamp {
		return a.Timestamp > b.Timestamp
	}
	return a.Id > b.Id
}

// Swap exchanges two lanes.
func (r *Ranking) Swap(i, k int) { r.lanes[i], r.lanes[k] = r.lanes[k], r.lanes[i] }

// Push is never used, since lanes are only removed.
func (r *Ranking) Push(x any) { r.lanes = append(r.lanes, x.(*lane)) }

// Pop removes the last lane.
func (r *Ranking) Pop() any {
	last := r.lanes[len(r.lanes)-1]
	r.lanes = r.lanes[:len(r.lanes)-1]
	return last
}
