// Package sqlitefile reads the pages of an SQLite database file and its write-ahead log
// without SQLite, even if they are damaged. SQLite stops at the first bad page; this
// package continues. It reads each page separately. With the file's pointer map it finds
// the table of a page that no parent refers to any more.
//
// It never writes, and no content makes it fail: it counts what it cannot read. The
// format is described at https://sqlite.org/fileformat2.html.
package sqlitefile
