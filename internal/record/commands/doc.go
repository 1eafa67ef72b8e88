// Package commands provides what a session does with records: it activates, creates and
// changes them, moves them to another state, syncs, saves and closes.
//
// Commands is the one handle on records. It also has the reads of package lookup.
//
// A command runs in one transaction. It checks its arguments and the state that the session
// has loaded, appends its changes to the log, and package record updates the rows. A session
// never overwrites a version that it has not loaded, unless it uses force.
package commands
