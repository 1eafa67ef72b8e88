// Package record stores design decisions and their reasons, so that they outlive a chat.
// Records form a tree, sessions load them, each project has a logical clock, and
// conflicts are always shown.
//
// It is the kernel of records: the shapes of what calls take and return, the changes in the
// log, the rows, past states, and the transaction of one call. Package commands changes
// records, lookup reads them, histories exchanges them with other stores, archived keeps
// them as files, and consistency checks and repairs them.
//
// Its terms: a record has a number in its project and a version. A session loads a record
// by activating it; the loaded version is its base version. A tick is one step of the
// project's clock. A change is an entry of the change log. History, activity, diffs,
// syncs and past states are read from the change log.
//
// Guarantees, each with a test that tries to break it:
//
//   - Ids and ticks have no gaps and no duplicates, whatever processes write concurrently.
//   - A session never overwrites a version that it has not loaded, unless it uses
//     force; then the overwritten version stays in the history.
//   - A change, its tick, its history and its log entry are stored
//     atomically.
//   - The log applied to an empty store gives equal records, ticks, sessions and
//     history, and so do the files of the archive: a page for each record, for
//     people, and the changes themselves next to them.
//
// The record-sync seed and contract records specify all of this.
//
// # Why: records
//
// A command decides and logs a change. The function that also applies documents from
// elsewhere then updates the rows, so a replay gives the same rows. Records of a past
// moment come from their newest documents at that time. Sessions and searchable words of a past
// moment come from a replay in memory. A row contains its path from the root, which
// never changes. Ids and ticks are permanent, so merging two histories appends one to the
// other. This package stores hashes of cited code and reads no files; the caller that
// shows a record checks drift against the worktree.
package record
