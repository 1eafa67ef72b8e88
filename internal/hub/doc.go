// Package hub is the server through which devices share memories (memories §13). Devices
// push their changes and pull those of the user's other devices. The hub stores a log for
// each stream (a memory or a vault), the current entries and a catalogue. Package database
// runs its statements, which are the same for SQLite and PostgreSQL.
//
// A process keeps no state in memory, so any number may serve one database. Writers of a
// stream queue at its row in hub_heads, which also counts the items: the numbers of a stream
// become visible in ascending order. The hub keeps the key of every item permanently. An item
// that is sent again gets the same result and is not stored twice.
//
// # Why: hub
//
// A push is grouped by stream. Each stream is one transaction that locks its row in hub_heads,
// loads the rows that the items name, applies the items in memory and writes the results. So
// the number of round trips is small for any batch. Only two insertions of many
// rows differ between the databases. SQLite stores all
// streams of a push in one commit, each in a savepoint. Numbers rise under the row's lock, so
// a pull only needs "above the cursor". Each item of an entry refers to the previous one, so a
// deletion finds the texts to blank without an index.
//
// Deleting a memory stores one sequence number; items up to it become invisible. A sweep
// deletes their texts later, in batches. A memory created again starts above that number.
//
// For an item that it already has, the hub also commits before it responds: if another
// process has cancelled a COMMIT, the later commit waits for both. Otherwise an item confirmed
// at the second attempt could be lost with the primary.
//
// If two contexts were written over the same one, the first to arrive becomes the current one.
// The second gets an earlier time, so that devices that decide by time agree. A counter for
// each user's catalogue ends waiting pulls when a memory is created or deleted. Other
// processes notice the change within 500 ms.
package hub
