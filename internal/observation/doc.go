// Package observation is the automatic memory: it stores what happened in agents' sessions, as
// their hooks and transcripts report it, redacted and searchable (contract observations, seed
// interface-protocol).
//
// An Event is one report of a harness. An observation is a row that an event leaves. A prompt is
// what a user typed or an agent answered; it is the parent of the rows that it caused. An action
// is an observation that is neither a prompt, a message nor a session mark. A digest sums up a
// session.
//
// This package holds what all its rooms share: events, types of rows, digests, the index of
// turns, outputs, tombstones. The rooms are the packages in its folder: capture stores events,
// search and browse answer questions, sessionstart and assist tell sessions what they should
// know, forget deletes.
//
// Three promises: a row that capture.Record reported is stored and visible to every reader that
// starts later. The same delivery makes no second row, live or imported. A text is redacted
// before it is cut and before anything else happens to it.
//
// # Why: search and ranking
//
// Words are prepared in Go (identifiers split, CJK by character) for FTS5's own tokenizer, so
// both drivers have the same index. Scores decrease with age within a type and project, so the
// best rows are found by merging the newest of each type, without a scan.
package observation
