package main

import (
	"slices"
	"time"
)

// sample is a set of measured times.
type sample []time.Duration

// at returns the time that a share q of the sample does not exceed (nearest rank). It returns 0
// for an empty sample.
func (s sample) at(q float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := int(q * float64(len(sorted)))
	if float64(rank) == q*float64(len(sorted)) {
		rank--
	}
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

func (s sample) median() time.Duration { return s.at(0.5) }

// ratio returns a divided by b, or 0 if b is 0.
func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// inTurn calls the measurements in turn, once per round, so that other load on the machine
// affects all of them equally.
func inTurn(rounds int, measurements ...func() error) error {
	for range rounds {
		for _, measure := range measurements {
			if err := measure(); err != nil {
				return err
			}
		}
	}
	return nil
}
