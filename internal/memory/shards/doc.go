// Package shards runs the jobs of one memory in order, and those of different memories
// concurrently (memories §8).
//
// A shard is a queue with one worker, a goroutine that lives only while there are jobs, so that a
// short command starts none.
package shards
