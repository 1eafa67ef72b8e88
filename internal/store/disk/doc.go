// Package disk knows a store's files and reads them without SQLite: their names and roles,
// cairn's copies, the key check of an encrypted store, the raw pages, and the volume.
//
// Its errors are those of the system; store.Explain converts them to faults.
package disk
