// Package memory is the kernel of memories, in which agents keep texts that outlive a session. It
// holds what all packages of memory share: callers and users, the transaction of one call, vaults
// and memories and how a memory is opened, the kept results of calls, and the streams of the
// replication.
//
// Terms. A memory contains entries and one context document. Memories are in vaults, and vaults
// belong to users. A user is the acting identity, a UUID that the device creates at first use. An
// entry is inflight while its hub has not confirmed it, and committed afterwards; without a hub it
// is committed immediately. A localId (pending-N) is the number of an entry's row. An entryId is a
// UUID that the store, or the hub, assigns on commit. A stream is the change log of one memory or
// one vault.
//
// The packages around it, each of which uses only ones before it:
//
//   - rules checks texts, ids and canonical JSON, as device and hub agree on.
//   - shards runs the jobs of one memory in order. The kernel itself uses these two.
//   - contents stores the rows of entries and contexts, and indexes their words (with ranking).
//   - vaults creates, lists and deletes vaults and memories, and deletes entries.
//   - entries adds, changes, lists and reads entries and contexts.
//   - retrieval finds entries by words and vectors (with ranking and embedding).
//   - items applies what comes from a hub, an export or the log; it checks and repairs rows.
//   - replication stores what was sent to a hub and what it has confirmed, refused and pulled.
//   - prompts contains the instructions for agents.
//   - memories is the one handle that callers get.
//
// A write is a job on the shard of its memory: one transaction with FULL durability that changes
// the rows and appends the change. A hub key follows from the memory and the idempotency key, so
// one index finds a retry, a lost response and an own item that is pulled.
package memory
