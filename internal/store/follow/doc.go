// Package follow runs followers of the store's change log, such as the archive, and keeps
// one account of all of them: position, failures and set-aside changes.
//
// A follower that is killed at any instruction resumes at its stored position. A change
// that it cannot process is set aside and does not stop others.
//
// # Why
//
// All followers share the tables followers and set_aside, so the state of all of them is
// in one place. A follower of many streams, such as the projects of the archive, has a lane
// for each, with its own cursor, failures and back-off. Live followers store nothing.
//
// One process runs a follower, with a lock that the kernel releases when the process dies.
// Lanes can also be leased one by one (Leases), so that several processes share the work.
// Such a lease expires even if its holder only sleeps, and an epoch rejects late results.
package follow
