// Package replica sends a device's memories to a hub and fetches the changes of other
// devices (memories §10.3, §13).
//
// # Why: a hub that may have changed
//
// A device verifies a hub whenever it reaches it, also after each failure, and sends
// nothing before: epoch, level of the token, and its own positions. The hub names those
// beyond its heads, which only a hub restored from an older backup has. A restore that
// nobody noticed is found by the first new change whose number is not above what the
// device had seen. The device then waits for `cairn hub restored`, because the hub's
// owner may still have the newer backup.
//
// A run belongs to one membership, the user's join to the hub. Each transaction of the
// run checks it, so a request that outlives a leave counts for nothing.
//
// A state in which a person must act is stored with the user. Every process of the
// device shows it, and awaits fail with it instead of running out of time.
package replica
