// Package archive writes mail and records as readable files into Git, with one repository
// per project (contract mail §10). FORMAT.md describes the files.
//
// The store is authoritative, and the archive follows it. Callers of cairn never wait for
// the archive. Every step can be repeated, and errors delay the archive but never make it
// wrong. An acknowledged commit is on main and on disk, whatever is killed afterwards.
//
// Package repository keeps the files in Git: 2.36 or later, without settings of the user or
// the system. People can use the repositories like any other at any time, and their commits
// stay.
//
// # Why: archive
//
// Each project is a separate lane of the follower, with its own cursor, so a broken
// project does not delay others. A kernel lock per project lets a command archive while a
// server runs. The cursor is stored after the commit is on disk, so after a kill the same
// changes are rendered again, with equal bytes.
//
// Each run of a project costs two git processes and some flushes, whatever it archives.
// So a busy project pauses after each run, for up to 2 s; the pause grows with the number
// of busy projects. git runs with a lower priority, and few projects are rendered
// concurrently. With 50 busy projects on two processors this reduced the 99th percentile
// of all calls from 140 ms to 17 ms.
package archive
