// Package mail coordinates agents that work in the same project: their names, the messages
// between them, and the files that each has reserved.
//
// Terms: an agent is a name under which a session or a person acts in a project. A message
// goes from one agent to others and may belong to a thread. A contact permits one agent to
// write to another. A reservation is an agent's lease on the files that match a pattern. A
// session of a harness acts as the agents that are bound to it.
//
// The promises, each held by a test that tries to break it:
//
//   - A call that succeeded is committed with everything it says; one that failed
//     has stored nothing (mail §1, G1 and G6).
//   - Every write appends the whole entity as it now stands to the change log, in
//     the transaction of its rows. The archive, other devices and a rebuilt store
//     come from there (G3, G5).
//   - Numbers that were given once are never given again (G4).
//   - Reads write nothing (G7).
//   - Who got a blind copy is known to the sender and to itself alone (G8).
//
// Each kind of entity has a document, which is what its change and its files in
// the archive hold, and one function that brings the rows to it: for a call of
// this process as for a change that comes from elsewhere. Apply stores what comes from
// elsewhere, in any order in which what a document refers to comes before it, and any
// number of times: what is here stays, a delivery learns what it did not know, and a purge
// wins. A document that comes too early is refused whole and can be applied later.
package mail
