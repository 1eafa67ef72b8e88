// Package rules holds what a device and a hub must agree on about memories: the limits of
// texts, the form of ids, and the canonical JSON from which hashes are made. It has no state.
package rules
