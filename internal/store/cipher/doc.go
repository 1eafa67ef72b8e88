// Package cipher is the SQLite that keeps a store's files encrypted at rest: a
// driver for database/sql and, below it, a file system that encrypts blocks of
// 4 KiB with Adiantum before they leave the process. The main file, the
// write-ahead log and journals have the store's key, temporary files one that
// nobody ever knows. Nothing here runs before a file is opened.
//
// Any number of processes may share an encrypted store, as they share a plain
// one (observations §3, §11.4).
package cipher
