// Package gosqlite is SQLite in Go: a driver for database/sql that opens encrypted stores,
// and all stores in builds without a C compiler. Its file system encrypts blocks of 4 KiB
// with Adiantum before they leave the process. The main file, the write-ahead log and
// journals use the store's key. Temporary files use a random key that is never stored.
// Nothing here runs before a file is opened.
//
// Any number of processes may share an encrypted store, as they share a plain
// one (observations §3, §11.4).
//
// # Why: encryption
//
// PATH-cipher holds a salt and the key's HMAC of it and tells a wrong key from
// damage; who has the key can make it again. Pages of the write-ahead log cross blocks,
// so these are read and written under a lock of their own. cairn encrypt writes a
// checked copy over the plain file instead of renaming, header first: nobody keeps the
// old one open, and with SQLite's header still there the next opener undoes it, without
// it goes on. The key never enters SQL or a URI. `cairn record` pays 1.3 × the CPU time,
// ranked queries 3 to 5 ×. In a build with C, cairn-hook does not link this package's SQLite,
// which is a third of a program: it hands the events of an encrypted store over to the cairn
// next to it, for 3 ms more per event.
package gosqlite
