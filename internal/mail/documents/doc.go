// Package documents converts mail to files and exports and back, and repairs, checks and
// purges it.
//
// Apply stores one document from elsewhere; import, reindex and the hub's pull call it. It is
// idempotent and accepts documents in any order in which a referenced document comes before
// the one that refers to it. Existing content stays, a delivery gains missing times, and a
// purge wins. A document that arrives too early is rejected as a whole and can be applied
// again later.
//
// The files of the archive are rendered from documents alone (mail §10.1). So reading them
// back gives the same documents, and rendering is repeatable.
package documents
