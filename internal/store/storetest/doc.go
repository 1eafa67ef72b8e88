// Package storetest holds what tests over a store share: opening one that is
// checked at the end, a clock that a test sets, child processes to kill, and the
// suite that every follower of the change log must pass.
package storetest
