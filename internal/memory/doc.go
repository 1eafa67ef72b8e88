// Package memory keeps what agents want kept: entries, and one context document, in
// memories, which stand in vaults of a user.
//
// Its words: a user is the acting identity, a UUID that the device makes at its first
// use. An entry is inflight while it is stored here and its hub has not confirmed it,
// and committed from then on; without a hub it is committed at once. A localId
// (pending-N) is the number of its row, its entryId a UUID that the store, or the hub,
// gives it upon commit. A stream is the log of one memory, or of one vault.
//
// A write is a job on the shard of its memory: a transaction with FULL durability
// that changes the rows and appends the change. What a hub does to a memory comes in
// through the methods for the replicator: batches are read from the log by the
// stream's position, confirmations flip rows, pulled items are applied; all of them
// may be repeated.
package memory
