// Package copies writes and reads the two kinds of copies of a store. An export contains
// projects as JSON lines, for people and for other stores. A backup contains the whole
// store and its archive.
package copies
