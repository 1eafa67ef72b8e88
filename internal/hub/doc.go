// Package hub is the server through which devices share memories (memories §13). Devices
// push their changes and pull those of the user's other devices. The hub stores a log for
// each stream (a memory or a vault), the current entries and a catalogue. It uses SQLite,
// or PostgreSQL and databases with its protocol, with the same statements.
//
// A process keeps nothing that matters in memory, so any number may serve one
// database. Writers of a stream queue at its row in hub_heads, which also counts:
// numbers of a stream become visible in ascending order. What was taken is known by
// its key for ever, so whatever is sent again is answered and not taken again.
//
// # Why: hub
//
// A push is sorted by stream; each stream is one transaction that locks its row in
// hub_heads, loads what the items name, applies them in memory and writes what came of
// it: few journeys, whatever the batch holds. The statements are the same for both
// databases ($n becomes ?n for SQLite), but for two insertions of many rows. SQLite
// takes all streams of a push in one commit, a savepoint each. Numbers rise under the
// row's lock, so a pull needs no more than "above the cursor". An entry's items are
// chained backwards, which is how a deletion finds the texts to blank without an index.
// A deleted memory is out of sight by one number, its texts go afterwards, in pieces;
// made again later than that, it begins above it. Of several PostgreSQL hosts all are
// asked at once, so that a silent one costs nothing, and the first that can be written
// to is taken; a connection that turns out to be read-only is closed. Where replication
// is synchronous a commit is never broken off, or it could be seen, and pulled, while one
// server alone has it; nobody hears of it, and it is sent again. An item that is known
// already is answered after a commit too: should another have broken one off, the commit
// behind it waits for both. Without that, an item acknowledged to a second try could be
// lost with the leader.
//
// Of two contexts over the same one the hub keeps the first to arrive as the current one.
// It gives the second a time before the first one's, so that devices which decide by time
// agree. A counter for each user's catalogue ends the pulls that wait when a memory is
// created or deleted; other processes see it at their next look, 500 ms later at most.
package hub
