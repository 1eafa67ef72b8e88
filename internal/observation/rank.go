package observation

import (
	"container/heap"
	"context"
	"database/sql"
	"math"

	"cairn/internal/store"
)

// recencyDays is the half-life of the signal of recency (observations §8.4).
const recencyDays = 7

// recency halves with every so many days of age; a future time counts as now.
func recency(now, at int64, halfLife float64) float64 {
	const day = 24 * 60 * 60
	return math.Exp2(-float64(max(now-at, 0)) / (halfLife * day))
}

// toolWeight is the type signal of the tool recent_context.
func toolWeight(obsType string) float64 {
	switch obsType {
	case typeEdit:
		return 1
	case typeCommand:
		return 0.67
	case typeCompact:
		return 0.5
	case typeMCP:
		return 0.33
	}
	return 0.17
}

// contextWeight is the type signal of the injected context (observations §9.1).
func contextWeight(obsType string) float64 {
	switch obsType {
	case typeMarker:
		return 1
	case typeGitCommit:
		return 0.9
	case typeCommandError:
		return 0.8
	case typeGitPush:
		return 0.6
	case typeGitHub, typeSpawn:
		return 0.33
	}
	return toolWeight(obsType)
}

// ranked is one row in the order of its score.
type ranked struct {
	id        int64
	timestamp int64
	path      string // path_key, "" without one
	tool      string // tool_name, "" without one
	project   int64
	score     float64
}

// lane is the rows of one type in one project, newest first. Inside a lane the
// score falls with age, so merging lanes is exact and needs no scan.
type lane struct {
	project int64
	obsType string
	rows    []ranked // those read ahead, best first
	more    bool     // there may be older ones
}

// ranking merges lanes into one descending order.
type ranking struct {
	lanes []*lane
	seen  map[rankedFile]bool // files that take has returned
	score func(project int64, obsType string, at int64) float64
	skip  func(obsType, tool string) bool // rows that are no part of the order; nil for none
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

// scope says which projects' lanes a ranking takes.
type scope struct {
	project int64
	mode    int // laneOnly, laneOthers or laneAll
}

// The values are what selectLaneHeads adds to (p.key = project): a sum of 1
// leaves a project out.
const (
	laneOthers = 0 // 1 for the project itself
	laneOnly   = 1 // 1 for every other one
	laneAll    = 2 // never 1
)

func newRanking(ctx context.Context, tx *store.Tx, s scope, typesJSON string,
	score func(project int64, obsType string, at int64) float64,
) (*ranking, error) {
	r := &ranking{score: score, seen: map[rankedFile]bool{}}
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		l := &lane{more: true}
		var row ranked
		err := rows.Scan(&l.project, &l.obsType, &row.id, &row.timestamp, &row.path, &row.tool)
		row.project, row.score = l.project, score(l.project, l.obsType, row.timestamp)
		l.rows = append(l.rows, row)
		r.lanes = append(r.lanes, l)
		return err
	}, selectLaneHeads, typesJSON, s.project, s.mode)
	heap.Init(r)
	return r, err
}

// rankedFile is a file of a project.
type rankedFile struct {
	project int64
	path    string
}

// take returns the next n best rows, one per project and path, best first. Further
// calls go on behind them.
func (r *ranking) take(ctx context.Context, tx *store.Tx, n int) ([]ranked, error) {
	var out []ranked
	for len(out) < n && len(r.lanes) > 0 {
		best := r.lanes[0].rows[0]
		skipped := r.skip != nil && r.skip(r.lanes[0].obsType, best.tool)
		if err := r.advance(ctx, tx); err != nil {
			return nil, err
		}
		f := rankedFile{best.project, best.path}
		if skipped || best.path != "" && r.seen[f] {
			continue
		}
		r.seen[f] = true
		out = append(out, best)
	}
	return out, nil
}

// advance drops the best row and restores the order.
func (r *ranking) advance(ctx context.Context, tx *store.Tx) error {
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

func (r *ranking) refill(ctx context.Context, tx *store.Tx, l *lane, last ranked) error {
	err := tx.Each(ctx, func(rows *sql.Rows) error {
		row := ranked{project: l.project}
		err := rows.Scan(&row.id, &row.timestamp, &row.path, &row.tool)
		row.score = r.score(l.project, l.obsType, row.timestamp)
		l.rows = append(l.rows, row)
		return err
	}, selectLane, l.project, l.obsType, last.timestamp, last.id, laneAhead)
	l.more = len(l.rows) == laneAhead
	return err
}

// Len, Less, Swap, Push and Pop order the lanes for container/heap: the highest
// score first, ties newest first.
func (r *ranking) Len() int { return len(r.lanes) }

func (r *ranking) Less(i, k int) bool {
	a, b := r.lanes[i].rows[0], r.lanes[k].rows[0]
	if a.score != b.score {
		return a.score > b.score
	}
	if a.timestamp != b.timestamp {
		return a.timestamp > b.timestamp
	}
	return a.id > b.id
}

// Swap exchanges two lanes.
func (r *ranking) Swap(i, k int) { r.lanes[i], r.lanes[k] = r.lanes[k], r.lanes[i] }

// Push is never used: lanes only leave.
func (r *ranking) Push(x any) { r.lanes = append(r.lanes, x.(*lane)) }

// Pop removes the last lane.
func (r *ranking) Pop() any {
	last := r.lanes[len(r.lanes)-1]
	r.lanes = r.lanes[:len(r.lanes)-1]
	return last
}
