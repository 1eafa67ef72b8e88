// Package mail is the kernel of cairn's mail, by which agents that work in the same project
// exchange messages and reserve files. It holds what all packages of mail share: the
// documents, their rows, projects, callers, and the transaction of one call.
//
// Terms: an agent is a name under which a session or a person acts in a project. A message
// goes from one agent to others and may belong to a thread. A contact permits one agent to
// write to another. A reservation is an agent's lease on the files that match a pattern. A
// session of a harness acts as the agents that are bound to it.
//
// The packages above it, each of which uses the ones before it:
//
//   - agents registers projects and agents, and binds sessions to agents.
//   - messages sends, lists, searches and summarizes messages, and manages contacts.
//   - reservations reserves files, finds conflicts and guards edits.
//   - documents reads and writes the archive and exports, restores, checks and purges.
//   - service is the one handle that callers get. It adds the calls that need several of them.
//
// The guarantees, each with a test that tries to break it:
//
//   - A call is atomic: if it succeeds, all its changes are committed. If it fails, it has
//     stored nothing (mail §1, G1 and G6).
//   - Every write appends the complete entity to the change log, in the transaction of its
//     rows. The archive, other devices and a rebuilt store are derived from the log (G3, G5).
//   - Numbers are never reused (G4).
//   - Reads write nothing (G7).
//   - Only the sender and the recipient of a blind copy see that recipient (G8).
//
// Each kind of entity has a document: the content of its change and of its files in the
// archive. Document.Apply updates the rows to match it. Both the calls of this process and
// imported changes use it, see documents.Apply.
package mail
