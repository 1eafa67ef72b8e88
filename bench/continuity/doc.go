// Package continuity measures how well cairn predicts the files that a new session
// will need. It replays a folder of transcripts, ordered by time, into one store.
// At the start of every session, and again at its first prompt, it queries the
// namers. It compares the files that they name with the files that the session
// touches afterwards.
//
// These are the rules:
//
//   - A session is all events of one session id, subagents included. An event
//     that an earlier session already contains is a copy, made by resuming or
//     forking, and is ignored everywhere. Copies have the same tool use id or line
//     id, or the same kind, time and text.
//   - A session starts with its first own event. Sessions are measured in the
//     order of their starts; sessions with the same start in the order of their
//     transcripts. At that moment the store contains every event of all sessions
//     with an earlier date, and its clock is set to the moment. The prompt itself
//     is not stored yet.
//   - The truth is what the session touches from that moment until its end, inside
//     its repository. Edited files are those of writes and edits that did not fail.
//     Touched files are these and the files of reads that did not fail.
//   - Two folders belong to one repository if one is inside the other. They also do
//     if at least half of the known files of one are known in the other by the same
//     relative path: adjacent worktrees and checkouts of several people. They are
//     replayed as one real repository, so that cairn's own rules make the paths
//     relative. People who share a repository also share the store, unless
//     Options.Machines gives each of them a separate store.
//   - A namer's first 20 distinct files count. Sessions with an empty truth are not
//     in the figures of that truth. A truth file that no event before the moment
//     names is cold: it cannot be predicted.
//   - The first session of a project finds nothing and counts as a recall of 0. The
//     figures are repeated without the sessions before which no file of their project
//     was known.
package continuity
