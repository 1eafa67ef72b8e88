// Package baresqlite is the least that a durable row costs with the SQLite
// driver and the pragmas of cairn's own store: one table, one insert, one
// commit. The benchmarks measure cairn next to it.
package baresqlite
