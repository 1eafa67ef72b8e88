// Package cairn is the façade: it opens the store, reads the settings and contains the use
// cases that need several packages. The command line, MCP and HTTP edges call it.
//
// # Why: hook
//
// Nothing works at program start. A hook never starts a checkpoint, unless it is the
// last to close the store; servers do, every half minute. Exit code 2 is a veto, so
// record has it for one case only. What a session is told is noted in a transaction of
// its own, after sweep and text: to do all that under the event's lock would save 2 % of
// the instructions, and so neither help nor ledger can cost an event.
//
// # Why: guards of edits
//
// An entry that only the guard needs has a matcher for the tools that edit, where its
// harness has matchers. Cursor takes silence before a tool for a refusal, so it is
// answered always, also with CAIRN_DISABLE. A bond by a call that a hook saw needs the
// token of a protected agent: anybody can make up a payload.
//
// # Why: backup
//
// A member of a backup depends on what it says alone: the store's copy is vacuumed, and
// a repository's bundle is packed again by one thread, without old deltas. A restore
// swaps the store by a salvage's rename, the one moment that counts; the note restored
// in it says which unpacked archive is to follow, and whoever uses the archive completes
// that.
//
// # Why: health
//
// Waits and loads are counted where they happen, in fixed arrays of atomics: one
// histogram (store.Histogram) for all durations, and store.UsageGauge. Quantiles and
// levels are computed on request. /metrics has the histogram of all waits, quantiles and
// levels those of the last minutes, or one bad hour would show for days. The depth of
// the archive's queue is read from the log, looked at once a second while there is work.
// A store's check at the start holds it up for two seconds at most: then a server
// serves, and ends if the check finds damage. It reads on a connection of its own, for a
// used one has pages in its cache as they were.
package cairn
