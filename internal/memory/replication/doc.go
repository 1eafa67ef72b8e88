// Package replication is the device's side of the replication of memories: which changes are to be
// sent, what a hub has confirmed or refused, what it has pulled, and what is sent again after the
// hub was restored from a backup. It joins users to hubs, waits for a hub, and purges what it has.
// The package replica talks to the hub.
//
// Each memory, and each vault, is one stream of the change log. The replicator sends every change
// after the stream's position that still has a document. To cancel, withdraw or purge a change,
// blank its document. A user's joins and leaves are counted; what the replicator stores names that
// count (memory.Membership). Each write checks in its own transaction whether the user has joined a
// hub, so `hub join` takes effect in all processes immediately. A hub may know a row if the row was
// part of a request that the hub did not refuse; other rows are deleted without asking. Pulled
// changes are logged under the device "hub" and never sent.
package replication
