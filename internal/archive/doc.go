// Package archive writes mail and records as readable files into Git, one repository per
// project with its work tree next to it (contract mail §10). FORMAT.md describes the files
// for readers without cairn.
//
// The store is the truth and the archive follows: nothing here is waited for by
// a caller of cairn, everything can be done again, and whatever goes wrong
// delays the archive and never falsifies it. A commit that was acknowledged is
// on main, on the disk, whatever is killed afterwards.
//
// It drives the git program, 2.36 or later: no setting of the user or the system
// and no hook has a say. Commits go through a long-lived git fast-import, which
// only makes objects; main is moved by git update-ref, from the value that was
// read to the new one or not at all. So people may use the repositories like any
// other, at any moment: what they commit stays.
//
// # Why: archive
//
// Each project is a lane of the follower: it has a cursor and is caught up with by itself,
// so a broken one holds up no other; a kernel's lock per project lets a command archive
// beside a server. Nothing is stored until the commit is on the disk, so whatever is killed is rendered again, to
// equal bytes.
//
// A turn costs a project two git processes and some flushes, whatever it archives. So a
// project that is written to all the time rests after its turns, for longer the more
// projects are at it (2 s at most), git runs with a lower priority, and few projects are
// rendered at once: with 50 busy projects on two processors the slowest hundredth of all
// calls took 140 ms without that, and takes 17 ms.
package archive
