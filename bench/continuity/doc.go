// Package continuity measures how well cairn tells a new session which files
// it will need. It replays a folder of transcripts in the order of time into one
// store; at the start of every session, and again at its first prompt, it asks
// the namers which files they would name and compares them with those that the
// session goes on to touch.
//
// What counts, in one place:
//
//   - A session is all events of one session id, subagents included. An event
//     that an earlier session holds already (by its tool use id or line id, or by
//     kind, time and text) is a copy made by resuming or forking and is left out
//     everywhere.
//   - A session starts with its first own event; sessions are asked in that
//     order, those of one moment in the order of their transcripts. The store then
//     holds every event of all sessions dated before that moment, and its clock
//     stands at it. The prompt itself is not stored yet.
//   - The truth is what the session touches from that moment on until its end,
//     inside its repository: edited are the files of writes and edits that did not
//     fail, touched are those and the files of reads that did not fail.
//   - Folders are taken for one repository when one lies in the other, or when at
//     least half of the files known of one are known of the other by the same
//     relative path: worktrees next to each other and checkouts of several people.
//     They are replayed as one real repository, so that cairn's own rules make the
//     paths relative. People who share a repository share the store too, unless
//     Options.Machines gives everyone a store of their own.
//   - A namer's first 20 distinct files count. Sessions with an empty truth are
//     left out of the figures of that truth. A truth file that no event before the
//     moment names is cold: nobody can know it.
//   - The first session of a project finds nothing and counts as a recall of 0. The
//     figures are given once more without the sessions before which no file of
//     their project was known.
package continuity
