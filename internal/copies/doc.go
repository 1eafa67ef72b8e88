// Package copies writes and reads the two kinds of copies: exports, which hold projects as
// readable lines for people and other stores, and backups, which hold the whole store and
// its archive.
package copies
