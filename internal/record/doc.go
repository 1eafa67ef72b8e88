// Package record stores design decisions and their reasons, so that they outlive a chat.
// Records form a tree, sessions load them, each project has a logical clock, and
// conflicts are always shown.
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
// # Documents from elsewhere
//
// A document of a change has a kind, a key, and an Entry or an Event as JSON. Validate
// checks one document, Check checks it at its position in the history, Apply stores it,
// and Render renders it as files of the archive. Exports, archives and the logs of other
// stores use only these functions. A change needs all changes before it in its history: a
// version needs the previous one, a child its parent. Documents that arrive too early
// wait and are reported.
//
// A change is known if its document is stored, under the current redaction rules, or if
// its original document is stored as an origin. Stored changes stay unchanged. Documents
// of another writer are appended after them. They keep their tick, version and number if
// these are the next ones here, else they get the next free ones. Their origin contains
// the original values, so each is stored only once. Then:
//
//   - A version whose author did not know the newest here does not replace it: it is kept
//     next to the newest, as a separate version with a proposal that merges both bodies
//     (Other). A version whose author knew both ends the conflict.
//   - A record whose number is taken here gets the next number. Its metadata's
//     merged_from contains the old one, and references to it are rewritten.
//   - A session from elsewhere has seen the ticks that both histories share.
//   - Data forgotten here is not restored.
//
// If two writers assigned different numbers and ticks, these differ permanently, unless a
// hub orders them. Everything else is equal on both sides.
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
