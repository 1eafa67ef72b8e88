// Package cairn is the façade: it opens the store, reads the settings and contains the use
// cases that need several packages. The command line, MCP and HTTP edges call it.
//
// # Why: hook
//
// Nothing runs at program start. A hook never starts a checkpoint, except as the last process
// that closes the store; servers do it every half minute. Exit code 2 is a veto, so record
// uses it in one case only. The injected text is recorded in a separate transaction, after the
// sweep and the text itself. One transaction for everything would save only 2 % of the
// instructions. With separate transactions an error of the help or the ledger cannot lose an
// event.
//
// # Why: guards of edits
//
// A hook entry that only the guard needs has a matcher for editing tools, if its harness
// supports matchers. Cursor treats missing output before a tool as a refusal, so cairn
// always prints an answer, also with CAIRN_DISABLE. Binding a session by an observed call
// requires the token of a protected agent, because any program can forge a payload.
//
// # Why: backup
//
// The bytes of a backup's member depend only on its content: the copy of the store is
// vacuumed, and the bundle of a repository is packed again by one thread, without old
// deltas. A restore replaces the store with the rename of a salvage, which is its atomic
// step. The note restored in the new store names the unpacked archive that still has to be
// moved. The next use of the archive completes this.
//
// # Why: health
//
// Wait times and load are counted at the source, in fixed arrays of atomics
// (measure.Histogram, measure.UsageGauge), also in the archive. Quantiles and levels are
// computed on request. /metrics has the histogram of all waits. Quantiles and levels cover
// only the last minutes, because otherwise one bad hour would show for days. The depth of
// the archive's queue is read from the change log, once a second while there is work.
//
// The check of the store delays the start of a server for two seconds at most. Then the
// server starts, and ends if the check finds damage. The check uses a separate connection,
// because a used one may have old pages in its cache.
package cairn
