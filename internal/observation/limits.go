package observation

import "cmp"

// Limits bound the injected context; the zero value means the defaults of
// observations §9.1 and amendments §A.5. Recovery does not raise a limit that is set.
type Limits struct {
	Local         *int // rows of the project; default 20, in recovery 30
	Cross         *int // rows of other projects; default 10, in recovery 15
	MaxTokens     int  // default 700, in recovery 1,100; of plain rows 1,200 and 1,800
	SuppressCross bool // no rows of other projects
	Plain         bool // one line per row and per prompt: nothing is folded
	Off           bool // no context at all
}

// DefaultLimits are the limits that hold where none is set.
func DefaultLimits(recovery bool) Limits {
	local, cross, tokens := 20, 10, 700
	if recovery {
		local, cross, tokens = 30, 15, 1100
	}
	return Limits{Local: &local, Cross: &cross, MaxTokens: tokens}
}

// Or are the limits with those of m where none is set.
func (l Limits) Or(m Limits) Limits {
	l.Local, l.Cross, l.MaxTokens = cmp.Or(l.Local, m.Local), cmp.Or(l.Cross, m.Cross), cmp.Or(l.MaxTokens, m.MaxTokens)
	return l
}
