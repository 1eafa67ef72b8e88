package store

import (
	"slices"
	"testing"
)

// The connection used last is reused first, and those unused for longest are closed
// first.
func TestIdleConnectionsAreTakenInReverse(t *testing.T) {
	t.Parallel()
	var idle idleSessions
	if idle.take() != nil || len(idle.beyond(0)) > 0 {
		t.Fatal("there was a connection before any was given")
	}
	a, b, c := new(session), new(session), new(session)
	for _, ses := range []*session{a, b, c} {
		idle.give(ses)
	}
	if idle.take() != c {
		t.Error("the one that was used last is not taken first")
	}
	idle.give(c)
	if got := idle.beyond(1); !slices.Equal(got, []*session{a, b}) {
		t.Error("others than the two oldest were given up")
	}
	if idle.take() != c || idle.take() != nil {
		t.Error("another one than the last is left")
	}
}
