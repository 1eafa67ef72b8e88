// Package project identifies projects and sessions: the project of a working directory,
// the session of an event, and the key of a file in its project.
//
// Its terms: a place is a folder with the Git files around it. A project is a row of the
// store, in most cases one repository. A key identifies a project: the normalised URL of
// a remote, the root commit of a history without a remote, or a path. A checkout is one
// git directory of a project, with all its worktrees. A session is one conversation of a
// harness, shared by all parts of cairn.
//
// Guarantees, each with a test that tries to break it:
//
//   - Reading a place starts no process, writes nothing and reads a bounded
//     amount; broken files are ignored (observations §1, §2).
//   - All checkouts of one remote are one project, from whichever worktree,
//     subdirectory or spelling. A fork and a submodule are different projects. Names
//     never join two projects (amendments §C).
//   - An id, once issued, stays valid: moved repositories keep it, merged
//     projects and aliases mean the project that took them over.
//   - A session's own project is decided by its first event; a later event
//     elsewhere has its own project (observations §2, rule 6).
//   - A process is recognised by its number and its start, so that a reused
//     number never matches (records §1, current session). It shows which session is
//     meant only while it has one open session (amendments §B.7).
//   - A session whose harness said so, was replaced or was killed has ended; sessions of
//     one harness in one checkout form a lineage.
//
// Every write is appended to the change log in the same transaction, except a session's
// last_seen, process, checkout and closed_at, which no other device needs.
package project
