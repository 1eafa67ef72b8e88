// Package database opens the hub's database, creates its schema and runs statements in it:
// in SQLite, or in PostgreSQL and databases with its protocol.
//
// The statements are the same for both ($n becomes ?n for SQLite). A transaction that fails
// temporarily runs again.
//
// With several PostgreSQL hosts it connects to all of them concurrently and uses the first
// writable one. So a host that does not respond costs no time. A connection that becomes
// read-only is closed. With synchronous replication it never cancels a COMMIT. A cancelled
// one becomes visible while only the primary has it. If the connection fails, the device
// gets no confirmation and sends the item again.
package database
