// Package hub is the shared end of replication (memories §13): devices push their
// changes here and pull those of the user's other devices. It keeps a log for each
// stream (a memory, or a vault), the current entries and a catalogue, in SQLite or
// in PostgreSQL and what speaks its protocol, with the same statements.
//
// A process keeps nothing that matters in memory, so any number may serve one
// database. Writers of a stream queue at its row in hub_heads, which also counts:
// numbers of a stream become visible in ascending order. What was taken is known by
// its key for ever, so whatever is sent again is answered and not taken again.
package hub
