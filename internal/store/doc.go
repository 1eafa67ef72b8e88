// Package store is the one room that speaks SQLite: it opens the file in every
// process role, runs read and write closures, keeps the change log and lets
// followers read it.
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
package store
