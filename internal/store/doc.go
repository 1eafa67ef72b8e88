// Package store is the only package that uses SQLite. It opens the file for every role of
// a process, runs read and write closures, appends to the change log and runs the followers
// of that log.
//
// The promises, each held by a test that tries to break it:
//
//   - A write that returned nil is committed. With Full it survives power loss,
//     with Normal a killed process (observations §3, design §7).
//   - Every change of a row is appended to the change log in the transaction of
//     that row; nothing is in one and not in the other (design §1).
//   - Concurrent writers of one process share a commit; a refused one leaves its
//     neighbours untouched (design §2).
//   - A store that is damaged or was written by a newer cairn is refused and
//     never altered, renamed or replaced (design §7).
//   - Processes that write at once queue in turn for as long as they are patient,
//     and none of them is starved.
//   - A follower that is killed at any instruction resumes at its stored
//     position; a change it cannot process is set aside and stops nothing else.
//
// # Why: rows and log
//
// Rows and changes name sessions, projects and the like by number, below views that show
// names (606 bytes a row, not 755). The log's hash chain covers the hash of a document,
// so that a purge can blank the text. An observation's change has no document: its row
// is one.
//
// # Why: followers
//
// All followers share one account (tables followers and set_aside): the position of each,
// its last failure, the changes that it set aside. status, doctor and /metrics read it. A
// follower of many streams, such as the projects of the archive, has a lane for each, with
// its own cursor, failures and back-off. Live followers store nothing.
//
// One process runs a follower, by a lock that the kernel frees when the process dies. Lanes
// can also be leased one by one (Leases), so that several processes share the work. Such a
// lease ends after a time even if its holder only sleeps, and an epoch refuses late results.
//
// # Why: forgetting
//
// A purge rewrites the file: secure_delete leaves copies on divided pages; a note in
// store_meta outlives a killed one. Tombstones are salted hashes of every key by which
// an event may be told again. Purges and rescans are logged as ranges of ids, sweeps
// not: how long to keep is each store's affair. store.Copies lists cairn's copies. A
// purged message keeps its row, whose column of attachments says when; its files' names
// told its subject, so the archive finds them by their time and number.
//
// # Why: damage
//
// A salvage reads pages, not SQL, which stops at the first bad one, and finds a page's
// table by the file's pointer map: only rows of damaged leaf pages are lost. The old
// file takes its own log in, then one rename replaces it, so the path always holds a
// whole store. Looking changes nothing: doctor opens as immutable, or copies first.
package store
