// Package harnesstest contains what the tests of all harnesses share: payloads, golden files and
// checks of events.
package harnesstest
