package main

import (
	"slices"
	"time"
)

// sample is a set of measured times.
type sample []time.Duration

// at is the time that a share q of the sample does not exceed (nearest rank), 0
// of an empty one.
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

// ratio is how many times a is b, 0 where b is nothing.
func ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// inTurn calls each of the measurements once, then each again, so that what the
// machine does meanwhile befalls all of them alike.
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
