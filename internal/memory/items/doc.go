// Package items applies what comes from elsewhere: vaults, memories, entries and contexts of a hub,
// of an export, of lines of entries, and of the store's own log, whose rows a salvage has lost.
//
// Each is an Item, and Documents applies it. Items may come twice and in any order; an item whose
// memory or entry is missing waits for it. What was deleted here stays deleted. A hub orders the
// changes of all devices, so its items replace rows. Other items leave existing rows as they are.
// Of two logged patches of one entry the later one counts.
//
// The package also writes exports, checks the invariants of all rows, and repairs rows after a
// salvage, because these describe the same documents.
package items
