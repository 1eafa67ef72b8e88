package web

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"cairn/internal/observation/browse"
)

// axis maps moments to positions from left to right, in percent of a fixed width. Long
// stretches without events are folded to a narrow band.
type axis struct {
	pieces []piece
	Ticks  []tick
	Folds  []fold
	Now    float64 // position of the current time
}

// piece is a stretch of time and its position.
type piece struct {
	from, to int64
	x, width float64
	folded   bool
}

// tick is a labelled moment on the axis.
type tick struct {
	X        float64
	Label    string
	Midnight bool
}

// fold is a stretch without events, drawn narrower than its duration.
type fold struct {
	X, Width float64
	Label    string // a duration such as 5 h
}

const (
	foldAfter = 2 * 3600 // minimum seconds without events before a stretch is folded
	foldPad   = 900      // seconds that stay visible before and after an event
	foldWidth = 4.0      // width of a fold in percent
	tickRoom  = 8.0      // minimum distance between two ticks in percent
	maxTicks  = 12
)

// newAxis returns the axis between two moments. busy contains the stretches with events,
// in any order.
func newAxis(from, to int64, busy []browse.Span) *axis {
	to = max(to, from+60)
	a := &axis{}
	for _, s := range shown(from, to, busy) {
		last := from
		if n := len(a.pieces); n > 0 {
			last = a.pieces[n-1].to
		}
		if s.From > last {
			a.pieces = append(a.pieces, piece{from: last, to: s.From, folded: true})
		}
		a.pieces = append(a.pieces, piece{from: s.From, to: s.To})
	}
	a.layOut()
	a.name()
	a.Now = a.at(to)
	return a
}

// shown returns the stretches drawn at full width, in order: the events with some padding
// around them. Gaps between them are longer than foldAfter.
func shown(from, to int64, busy []browse.Span) []browse.Span {
	all := slices.Clone(busy)
	all = append(all, browse.Span{From: to, To: to})
	slices.SortFunc(all, func(x, y browse.Span) int { return int(x.From - y.From) })
	out := []browse.Span{{From: from, To: from}}
	for _, s := range all {
		s.From, s.To = max(s.From, from), min(max(s.To, from), to)
		last := &out[len(out)-1]
		if s.From-last.To <= foldAfter+2*foldPad {
			last.To = max(last.To, s.To)
			continue
		}
		last.To += foldPad
		out = append(out, browse.Span{From: s.From - foldPad, To: s.To})
	}
	if first := out[0]; first.To-first.From <= foldPad && len(out) > 1 { // nothing happened at the beginning
		out = out[1:]
	}
	return out
}

// layOut positions the pieces. Folds have a fixed width; the width of other pieces is
// proportional to their length.
func (a *axis) layOut() {
	folds, length := 0.0, 0.0
	for _, p := range a.pieces {
		if p.folded {
			folds++
		} else {
			length += float64(p.to - p.from)
		}
	}
	each := min(foldWidth, 30/max(folds, 1))
	x := 0.0
	for i := range a.pieces {
		p := &a.pieces[i]
		p.x, p.width = x, each
		if !p.folded {
			p.width = (100 - folds*each) * float64(p.to-p.from) / max(length, 1)
		} else {
			a.Folds = append(a.Folds, fold{x, each, long(p.to - p.from)})
		}
		x += p.width
	}
}

// at returns the position of a moment. Moments outside the axis are clamped to its ends.
func (a *axis) at(t int64) float64 {
	for _, p := range a.pieces {
		if t <= p.to {
			return p.x + p.width*float64(max(t-p.from, 0))/float64(max(p.to-p.from, 1))
		}
	}
	return 100
}

// name adds ticks at full or quarter hours, as many as fit. A tick at midnight is labelled
// with the day.
func (a *axis) name() {
	step := int64(24 * 3600)
	for _, s := range []int64{15 * 60, 30 * 60, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600} {
		if a.visible()/s <= int64(maxTicks) {
			step = s
			break
		}
	}
	free := 0.0
	for _, p := range a.pieces {
		if p.folded {
			free = p.x + p.width + tickRoom/2
			continue
		}
		for t := nextLocal(p.from, step); t <= p.to; t = nextLocal(t+1, step) {
			x := a.at(t)
			if x < free || x > 96 {
				continue
			}
			at := time.Unix(t, 0)
			k := tick{X: x, Label: at.Format("15:04")}
			if at.Hour() == 0 && at.Minute() == 0 {
				k.Label, k.Midnight = at.Format("Mon 2"), true
			}
			a.Ticks = append(a.Ticks, k)
			free = x + tickRoom
		}
	}
}

// Grid returns the lines of the ticks as a path in a drawing of 100 by 30 units. One path
// costs a browser less than many lines.
func (a *axis) Grid() string {
	xs := make([]float64, len(a.Ticks))
	for i, t := range a.Ticks {
		xs[i] = t.X
	}
	return verticals(xs, 0, 30)
}

// verticals returns vertical lines at ascending or descending positions as a path. It omits
// lines that would touch the previous one.
func verticals(xs []float64, top, bottom int) string {
	const apart = 0.25
	var path strings.Builder
	last := -1.0
	for _, x := range xs {
		if math.Abs(x-last) >= apart {
			fmt.Fprintf(&path, "M%.2f %dV%d", x, top, bottom)
			last = x
		}
	}
	return path.String()
}

// visible returns the number of seconds that are not folded.
func (a *axis) visible() (n int64) {
	for _, p := range a.pieces {
		if !p.folded {
			n += p.to - p.from
		}
	}
	return n
}

// nextLocal returns the first moment from t on that is a multiple of step in local time.
func nextLocal(t, step int64) int64 {
	_, offset := time.Unix(t, 0).Zone()
	local := t + int64(offset)
	return (local+step-1)/step*step - int64(offset)
}
