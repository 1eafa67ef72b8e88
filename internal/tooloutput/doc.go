// Package tooloutput reads what commands and tools print: it shortens an output to a digest,
// hashes its lines, removes terminal escapes, and reads what git printed about commits and
// pushes.
//
// The store keeps the digest and salted hashes of the lines, never the whole text (amendments
// §A.6). Stored digests depend on the dictionary of Pack, so the dictionary never changes.
package tooloutput
