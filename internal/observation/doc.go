// Package observation is the automatic memory. It stores events of agents' sessions, as hooks
// and transcripts report them, redacted and searchable (contract observations, seed
// interface-protocol).
//
// An Event is one report of a harness. An observation is a row that an event creates. A prompt
// is a text of a user or an agent; it is the parent of the rows that it caused. An action is an
// observation that is neither a prompt, a message nor a session mark. A digest summarizes a
// session.
//
// This package contains what its subpackages share: events, row types, digests, the turn index,
// outputs and tombstones. Package capture stores events. Packages search and browse query them.
// Packages sessionstart and assist provide context to sessions. Package forget deletes rows.
//
// The package guarantees three things. A row that capture.Record reported is stored and visible
// to every later reader. The same delivery creates no second row, live or imported. A text is
// redacted before it is cut or processed in any other way.
//
// # Why: search and ranking
//
// Words are prepared in Go (identifiers split, CJK by character) for the built-in FTS5
// tokenizer, so both drivers have the same index. Within a type and project, scores decrease
// with age. The best rows are therefore found by merging the newest rows of each type, without a
// scan.
package observation
