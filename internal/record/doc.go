// Package record keeps design reasoning that outlives a chat: records in a tree,
// sessions that load them, a logical clock for each project, conflicts that are
// shown and never silently lost.
//
// Its words: a record has a number in its project and a version; a session loads
// a record by activating it and then knows its base version; a tick is one write
// of the project's clock; a change is an entry of the change log, which history,
// activity, diffs, syncs and every look at the past are read from.
//
// The promises, each held by a test that tries to break it:
//
//   - Ids and ticks have no gap and no double, whatever processes write at once.
//   - A version that a session has not loaded is never overwritten by it unless
//     it says so, and then it stays in the history.
//   - A change, its tick, its history and its log entry are all there or all
//     absent.
//   - The log applied to an empty store gives equal records, ticks, sessions and
//     history, and so do the files of the archive: a page for each record, for
//     people, and the changes themselves beside them.
//
// All of it is laid down in the record-sync seed and in contract records.
//
// # Why: records
//
// A command decides, then logs, and the function that applies a change from elsewhere
// brings the rows to it, so a replay comes out the same; the past is the log up to
// there, replayed in memory. A row has its path from the root, which never changes. Ids
// and ticks are permanent, so a merge of two histories appends one to the other.
// Whoever shows a record judges its drift, against the worktree at hand; the room keeps
// hashes and reads no files.
package record
