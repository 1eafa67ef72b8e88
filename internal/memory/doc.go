// Package memory stores texts that agents want to keep: entries, and one context document per
// memory. Memories are in vaults, and vaults belong to users.
//
// Terms. A user is the acting identity, a UUID that the device creates at first use. An entry
// is inflight while its hub has not confirmed it, and committed afterwards; without a hub it is
// committed immediately. A localId (pending-N) is the number of an entry's row. An entryId is a
// UUID that the store, or the hub, assigns on commit. A stream is the change log of one memory
// or one vault.
//
// A write is a job on the shard of its memory: one transaction with FULL durability that changes
// the rows and appends the change. The replicator reads batches from the log, starting at the
// stream's position, and stores the hub's confirmations. Both are idempotent.
//
// What comes from elsewhere is an Item, and Documents applies it: a page of a hub, a line of an
// export or of an import of entries, or a change of the log whose row a salvage has lost. Items
// may come twice and in any order; an item whose memory or entry is missing waits for it. What
// was deleted here stays deleted. A hub orders the changes of all devices, so its items replace
// rows. Other items leave existing rows as they are. Of two logged patches of one entry the
// later one counts.
//
// # Why: search of memories
//
// The index has one full-text row per committed entry. Each term is prefixed with the memory's
// id, so a query reads the postings of one memory only, and rareness is measured within it. An
// entry's place encodes its group and its position there, so windows and groups are computed
// while a query runs. An index of windows would lag behind, need repair after each delete, and
// store each text seven times. Triggers delete the words of a deleted row. Stems and irregular
// forms are computed in Go.
//
// On cairn-bench locomo, 75 % of the answers are within 5 hits and 83 % within 10; the
// contract's recipe reaches 73 and 81. These gave half a point to two points each: questions
// that name the speaker, neighbours before an entry counting more, texts that name times, short
// entries that do not ask. Phrases, feedback from the first hits and a thesaurus gave less. The
// scores of long entries decrease with their length: on cairn-bench chats (124 sessions of
// coding agents) 73 % of the sentences are within 10 hits, 63 % without that, 65 % with plain
// BM25.
//
// # Why: memories
//
// Each memory, and each vault, is one stream of the change log. The replicator sends every
// change after the stream's position that still has a document. To cancel, withdraw or purge a
// change, blank its document. A user's joins and leaves are counted; what the replicator stores
// names that count (Membership). Each write checks in its own transaction whether the user has
// joined a hub, so `hub join` takes effect in all processes immediately. A hub may know a row if
// the row was part of a request that the hub did not refuse; other rows are deleted without
// asking. The hub key follows from the memory and the idempotency key, so one index finds a
// retry, a lost response and an own item that is pulled. Pulled changes are logged under the
// device "hub" and never sent. A shard's worker lives only while there are jobs, so a short
// command starts none.
package memory
