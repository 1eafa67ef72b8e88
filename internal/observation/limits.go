package observation

import "cmp"

// Limits bounds the injected context. The zero value means the defaults of observations §9.1 and
// amendments §A.5. Recovery does not raise a limit that is set.
type Limits struct {
	Local         *int // rows of the project; default 20, in recovery 30
	Cross         *int // rows of other projects; default 10, in recovery 15
	MaxTokens     int  // default 700, in recovery 1,100; for plain rows 1,200 and 1,800
	SuppressCross bool // no rows of other projects
	Plain         bool // one line per row and per prompt, without grouping
	Off           bool // no context at all
}

// DefaultLimits returns the limits for unset fields.
func DefaultLimits(recovery bool) Limits {
	local, cross, tokens := 20, 10, 700
	if recovery {
		local, cross, tokens = 30, 15, 1100
	}
	return Limits{Local: &local, Cross: &cross, MaxTokens: tokens}
}

// Or returns the limits with unset fields taken from m.
func (l Limits) Or(m Limits) Limits {
	l.Local, l.Cross, l.MaxTokens = cmp.Or(l.Local, m.Local), cmp.Or(l.Cross, m.Cross), cmp.Or(l.MaxTokens, m.MaxTokens)
	return l
}
