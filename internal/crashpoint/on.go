//go:build testhooks

// Package crashpoint marks the places at which a test may have a process kill itself
// (memories §15). Without the build tag testhooks it does nothing, and the compiler
// leaves nothing of its calls.
package crashpoint

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// The points that are passed here, or mean something to a reset.
const (
	AfterAck     = "after_ack"
	MidMigration = "mid_migration"
)

// Names are the points of a device and of a hub.
func Names() (device, hub []string) {
	return []string{
		"before_local_commit", "after_local_commit", AfterAck, "after_lease", "before_hub_send", "after_hub_201",
		"before_flip_commit", "after_flip_commit", "mid_pull", "mid_purge", MidMigration,
		"follower_read", "follower_worked", "follower_advanced", "archive_rendered", "archive_written", "archive_committed", "archive_advanced",
	}, []string{"hub_before_commit", "hub_after_commit"}
}

// Point is an armed point: the process dies at the passing after the next Skip ones.
type Point struct {
	At   string `json:"at"` // as it was named when it was armed
	Skip int    `json:"skip"`
}

// armed are the armed points of this process. They belong to the process as the death
// does that they bring, and a call at a point has nothing else to find them by.
var armed struct {
	mu     sync.Mutex
	points []Point
	writes int // of memories that were stored: passings of after_local_commit
}

// canonical is a point's name without aliases.
func canonical(name string) string {
	if name == "after_backend_201" {
		return "after_hub_201"
	}
	return name
}

// Arm arms a point, in the place of what was armed there.
func Arm(p Point) {
	Disarm(func(name string) bool { return canonical(name) == canonical(p.At) })
	armed.mu.Lock()
	defer armed.mu.Unlock()
	armed.points = append(armed.points, p)
}

// Disarm takes points away.
func Disarm(which func(name string) bool) {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	armed.points = slices.DeleteFunc(armed.points, func(p Point) bool { return which(p.At) })
}

// Known reports whether one of some points has that name, or alias.
func Known(names []string, name string) bool { return slices.Contains(names, canonical(name)) }

// Armed lists the armed points, never nil; Skip is what is left of it.
func Armed() []Point {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	return append([]Point{}, armed.points...)
}

// Pass is called at the point of that name.
func Pass(name string) {
	armed.mu.Lock()
	defer armed.mu.Unlock() // if this returns: nobody passes anything while the process dies
	if name == "after_local_commit" {
		armed.writes++
	}
	for i := range armed.points {
		p := &armed.points[i]
		if canonical(p.At) != name {
			continue
		}
		if p.Skip--; p.Skip < 0 {
			fmt.Fprintln(os.Stderr, "crash-point "+p.At)
			Die()
		}
	}
}

// Die kills the process as kill -9 does.
func Die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // the signal is underway
}

// Writes is how many writes of memories were stored since the process began.
func Writes() int {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	return armed.writes
}
