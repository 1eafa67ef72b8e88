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
package observation
