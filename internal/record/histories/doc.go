// Package histories exports the history of a project's records and stores histories from
// elsewhere: of exports, archives, other stores and merged projects.
//
// A document of a change has a kind, a key, and an Entry or an Event as JSON. Validate
// checks one document, Check checks it at its position in the history, Apply stores it,
// and package archived renders it as files of the archive. Exports, archives and the logs
// of other stores use only these functions. A change needs all changes before it in its
// history: a version needs the previous one, a child its parent. Documents that arrive too
// early wait and are reported.
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
package histories
