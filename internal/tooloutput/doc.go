// Package tooloutput processes the output of commands and tools. It shortens an output to a
// digest, hashes its lines, removes terminal escapes, and parses what git printed about commits
// and pushes.
//
// The store keeps the digest and salted hashes of the lines, never the whole text (amendments
// §A.6). Stored digests depend on the dictionary of Pack, so the dictionary never changes.
package tooloutput
