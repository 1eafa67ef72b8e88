// Package copies makes copies of what cairn knows and reads them: exports, which hold
// projects line by line for people and other stores, and backups, which hold the whole
// store with its archive for the day when it is lost.
package copies
