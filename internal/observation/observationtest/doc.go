// Package observationtest gives tests of the observation packages a store with a clock that they
// move, and short ways to record events.
package observationtest
