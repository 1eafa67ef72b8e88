// Package search finds rows and sessions that match a query or answer a question.
//
// Search and Find rank rows by BM25. Recall ranks turns (a prompt with the actions and the answer
// that follow it) and the sessions that contain them. Related is Recall's ranking within a time
// limit, for help with a prompt.
//
// The index of turns contains each word once per turn. Rows that are not in an indexed turn yet
// are found through the index of rows. A row is therefore found as soon as a hook has stored it.
package search
