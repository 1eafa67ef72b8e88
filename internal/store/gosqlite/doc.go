// Package gosqlite is a database/sql driver for SQLite in Go. It opens encrypted stores,
// and in builds without a C compiler all stores. Its file system encrypts blocks of 4 KiB
// with Adiantum before they leave the process. The main file, the write-ahead log and
// journals use the store's key. Temporary files use a random key that is never stored.
// Nothing here runs before a file is opened.
//
// Any number of processes may share an encrypted store, like a plain one (observations
// §3, §11.4).
//
// # Why: encryption
//
// PATH-cipher contains a salt and the key's HMAC of it. It distinguishes a wrong key from
// damage, and can be created again with the key. Pages of the write-ahead log cross
// blocks, so these are read and written under a separate lock. cairn encrypt writes a
// checked copy over the plain file instead of renaming it, header first, so that no
// process keeps the old file open. After an interruption the next opener undoes the
// encryption if SQLite's header is still there, else it completes it. The key never
// enters SQL or a URI. `cairn record` takes 1.3 × the CPU time, ranked queries 3 to 5 ×.
// In a build with C, cairn-hook does not link this package's SQLite, which is a third of
// a program. It passes the events of an encrypted store to the cairn next to it, for 4 to
// 6 ms more per event.
package gosqlite
