// Package integrity checks that stored rows, words and checksums are consistent, and repairs them
// after a salvage.
package integrity
