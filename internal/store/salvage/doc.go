// Package salvage replaces a store's file while no other process has it open: a damaged
// store by everything that can still be read of it (Run), and any store by another one,
// such as a backup (Replace).
//
// # Why
//
// A salvage reads pages, because SQL stops at the first bad one. It finds a page's table
// with the file's pointer map, so only rows of damaged leaf pages are lost. The old
// file's log is checkpointed, then one rename replaces the file, so the path always holds
// a complete store.
package salvage
