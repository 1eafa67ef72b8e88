// Package ranking decides which entries of a memory answer a question: it splits texts and
// questions into terms, and scores entries by the terms in them and around them.
//
// It reads no store. A place numbers an entry in its group, a session or a day; the index of
// the memory returns the places of each term.
package ranking
