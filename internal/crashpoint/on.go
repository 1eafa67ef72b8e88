//go:build testhooks

// Package crashpoint marks the points at which a test can make a process kill itself
// (memories §15). Without the build tag testhooks it does nothing, and the compiler
// removes its calls.
package crashpoint

import (
	"fmt"
	"os"
	"slices"
	"sync"
)

// Names of points that this package or a reset treats specially.
const (
	AfterAck     = "after_ack"
	MidMigration = "mid_migration"
)

// Names returns the crash points of a device and those of a hub.
func Names() (device, hub []string) {
	return []string{
		"before_local_commit", "after_local_commit", AfterAck, "after_lease", "before_hub_send", "after_hub_201",
		"before_flip_commit", "after_flip_commit", "mid_pull", "mid_purge", MidMigration,
		"follower_read", "follower_worked", "follower_advanced", "archive_rendered", "archive_written", "archive_committed", "archive_advanced",
	}, []string{"hub_before_commit", "hub_after_commit"}
}

// Point is an armed point. The first Skip passes do nothing; the next one kills the
// process.
type Point struct {
	At   string `json:"at"` // the name under which it was armed
	Skip int    `json:"skip"`
}

// armed holds the armed points of this process. It is global because a crash point has
// only its name, and because it kills the whole process.
var armed struct {
	mu     sync.Mutex
	points []Point
	writes int // stored writes of memories: passes of after_local_commit
}

// canonical returns the name of a point, with aliases resolved.
func canonical(name string) string {
	if name == "after_backend_201" {
		return "after_hub_201"
	}
	return name
}

// Arm arms a point. It replaces a point of the same name.
func Arm(p Point) {
	Disarm(func(name string) bool { return canonical(name) == canonical(p.At) })
	armed.mu.Lock()
	defer armed.mu.Unlock()
	armed.points = append(armed.points, p)
}

// Disarm removes the points whose name matches.
func Disarm(which func(name string) bool) {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	armed.points = slices.DeleteFunc(armed.points, func(p Point) bool { return which(p.At) })
}

// Known reports whether names contains the name, or the name that it is an alias of.
func Known(names []string, name string) bool { return slices.Contains(names, canonical(name)) }

// Armed returns the armed points, never nil. Skip is the number of passes left before the
// process dies.
func Armed() []Point {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	return append([]Point{}, armed.points...)
}

// Pass kills the process if the point of that name is armed and has no passes left to
// skip.
func Pass(name string) {
	armed.mu.Lock()
	defer armed.mu.Unlock() // only if Pass returns: a dying process keeps the lock, so no other point is passed
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

// Die kills the process, like kill -9.
func Die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // wait for the signal
}

// Writes returns the number of memory writes that this process has stored.
func Writes() int {
	armed.mu.Lock()
	defer armed.mu.Unlock()
	return armed.writes
}
