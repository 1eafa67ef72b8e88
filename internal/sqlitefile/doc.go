// Package sqlitefile reads an SQLite database file and its write-ahead log page
// by page, damaged or not, without SQLite. What SQLite gives up on at the first
// bad page, it reads around: every page is taken for itself, and a page whose
// way down from the root is lost is found by the file's own pointer map.
//
// It never writes, and no content makes it fail: what cannot be read is counted.
// The format is that of https://sqlite.org/fileformat2.html.
package sqlitefile
