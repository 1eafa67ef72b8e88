// Package store keeps cairn's data in one SQLite file; no other package uses SQLite. It
// runs read and write transactions, appends to the change log, migrates the schema, and
// reads what was at a past moment. Around it are packages for the rest: follow, salvage,
// encryption and wordcheck use it; disk and locks know the files without SQLite.
//
// Guarantees, each with a test that tries to break it:
//
//   - A write that returned nil is committed. With Full it survives power loss,
//     with Normal a killed process (observations §3, design §7).
//   - Every change of a row is appended to the change log in the same transaction;
//     nothing is in only one of the two (design §1).
//   - Concurrent writers of one process share a commit; a failed one does not affect
//     the others (design §2).
//   - A store that is damaged or was written by a newer cairn is refused and
//     never altered, renamed or replaced (design §7).
//   - Concurrent writers of several processes queue in order until their time limit,
//     and none of them starves.
//
// # Why: rows and log
//
// Rows and changes refer to sessions, projects and other names by number; views show the
// names (606 bytes per row instead of 755). The log's hash chain covers the hash of a
// document, so a purge can blank the text. An observation's change has no document,
// because its row is the document.
//
// # Why: forgetting
//
// A purge rewrites the file, because secure_delete leaves copies on divided pages. A note
// in store_meta lets the next process finish a killed purge. Tombstones are salted hashes
// of every key under which an event may be recorded again. Purges and rescans are logged
// as ranges of ids. Sweeps are not logged, because each store has its own retention.
// disk.Copies lists cairn's copies. A purged message keeps its row; the attachments
// column holds the time of the purge. File names contain the subject, so the archive
// finds its files by time and number.
//
// # Why: examining
//
// Examining changes nothing: doctor opens the file as immutable, or copies it first.
package store
