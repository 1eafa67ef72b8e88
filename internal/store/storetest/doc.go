// Package storetest contains helpers for tests with a store: a store that is checked at
// the end, a clock that a test sets, child processes to kill, and the suite that every
// follower of the change log must pass.
package storetest
