// Package forget deletes and rewrites stored rows. Purge deletes rows permanently, Sweep deletes
// expired rows, and Rescan applies the current redaction rules (observations §7, §11).
//
// All work runs in short transactions, so that a live hook hardly waits. Rows are gone when their
// transaction is committed. Finish then removes their bytes from the files. If a purge or rescan
// is interrupted before that, the next one calls Finish.
package forget
