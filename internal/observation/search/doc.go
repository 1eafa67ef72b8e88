// Package search finds rows and sessions that match a query or answer a question.
//
// Search and Find rank rows by BM25. Recall ranks turns (a prompt with the actions and the
// answer that follow it) and the sessions around them. Related is the ranking of Recall within
// a time limit, for help with a prompt.
//
// The index of turns contains each word once. Rows that no turn of the index contains yet are
// found by the index of rows, so a row is found as soon as a hook has stored it.
package search
