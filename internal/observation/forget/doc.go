// Package forget deletes and rewrites what is stored: Purge forgets rows permanently, Sweep
// forgets expired ones, Rescan applies the present rules of redaction (observations §7, §11).
//
// Work is done in short transactions, so that a live hook hardly waits. Rows are gone when their
// transaction is committed. Finish then removes their bytes from the files; a purge or rescan
// that was interrupted before that is finished by the next one.
package forget
