// Package baresqlite shows the minimum cost of a durable row with the SQLite driver and the
// pragmas of cairn's store. It has one table, one insert and one commit. The benchmarks compare
// cairn with it.
package baresqlite
