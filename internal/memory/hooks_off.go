//go:build !testhooks

package memory

// shardHooks is what a test does to a worker: nothing in this build (memories §15).
type shardHooks struct{}

// enter is called by the worker before each job.
func (shardHooks) enter() {}
