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
//     people, and the changes themselves next to them.
//
// # Documents from elsewhere
//
// A change is a document: a kind, a key, an Entry or an Event as JSON. Validate judges
// one by itself, Judge at its place among those before it, Apply takes it over, Render
// makes the archive's files of it. Exports, archives and the logs of other stores go this
// way and no other. A change needs all that are before it in its history, so a version has
// the one before it, a child its parent; what comes too early waits and is reported.
//
// A change is here if its document is, under the present rules of redaction, or if the
// document that it was where it was made. What is here stays as it is. Documents of
// another writer are appended behind it: with their own tick, version and number where
// these are the next ones here, else with the next that are free. They keep in their
// origin what they were, so that they come once, whatever way they take. Then:
//
//   - A version whose maker did not know the newest here changes nothing: it is kept
//     beside the newest, as a version of its own with a proposal that merges both bodies
//     (Other). A version whose maker knew both ends the conflict.
//   - A record whose number another one has here gets the next number. Its metadata's
//     merged_from names the former, and what came with it refers to it by the new one.
//   - A session from elsewhere has seen the ticks that both histories share.
//   - What was forgotten here does not come back.
//
// Where two writers took other numbers and ticks, theirs differ for ever, unless a hub
// orders them; all else is equal on both sides.
//
// All of it is laid down in the record-sync seed and in contract records.
//
// # Why: records
//
// A command decides, then logs, and the function that applies a document from elsewhere
// brings the rows to it, so a replay comes out the same; the past is the log up to
// there, replayed in memory. A row has its path from the root, which never changes. Ids
// and ticks are permanent, so a merge of two histories appends one to the other.
// Whoever shows a record judges its drift, against the worktree at hand; the room keeps
// hashes and reads no files.
package record
