// Package contents stores the contents of memories: the rows of entries and contexts, their
// documents in the change log, and the index of their words.
//
// Its functions run in the transaction of a call (memory.CallTx) and act on the call's memory.
//
// The index has one full-text row per committed entry. Each term is prefixed with the memory's id,
// so a query reads the postings of one memory only, and rareness is measured within it. An entry's
// place encodes its group and its position there, so windows and groups are computed while a query
// runs. An index of windows would lag behind, need repair after each delete, and store each text
// seven times. Triggers delete the words of a deleted row. Stems and irregular forms are computed
// in Go (package ranking).
package contents
