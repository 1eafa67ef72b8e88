// Package observation is the automatic memory: what happened in a session, as
// its harness reported it, redacted, searchable, and given back to the next
// session in a few hundred tokens (contract observations, seed
// interface-protocol).
//
// Its words: an Event is one report of a harness; an observation is the row it
// may leave; a prompt is what a user typed or an agent answered, and the parent
// of what was done because of it; an action is an observation that is no prompt,
// message or session mark; a digest is what a session comes to; the context is
// the Markdown that a new session is given.
//
// Its promises: a row that Record reported is stored and visible to every reader
// that starts later; the same delivery makes no second row, live or imported; a
// text is redacted before it is cut and before anything else happens to it.
//
// # Why: search and ranking
//
// Words are prepared in Go (identifiers split, CJK by character) for FTS5's own
// tokenizer: the same index with both drivers. A score falls with age inside a type and
// project, so merging the newest of each finds the best without a scan. Help counts in
// the index before it reads rows, within 15 ms or not at all. Likely files come from a
// sum of logarithms (observation.Likely): with it a session is told 45 % of the files
// that it goes on to edit, after its first prompt 56 %; by the score alone 28 %. Mail is
// ranked by bm25 over all matches, unless 10,000 messages match and as many come into
// question: a score costs 2 µs.
//
// # Why: import
//
// Where ids fail, calls are counted: the nth equal call of a transcript is known if the
// session holds n. An export is judged whole before any of it is taken, in small
// transactions; the changes become this device's own.
package observation
