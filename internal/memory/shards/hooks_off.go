//go:build !testhooks

package shards

// shardHooks lets a test control a worker; it does nothing in this build (memories §15).
type shardHooks struct{}

// enter is called by the worker before each job.
func (shardHooks) enter() {}
