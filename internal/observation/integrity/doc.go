// Package integrity checks that stored rows, words and checksums fit together, and repairs them
// after a salvage.
package integrity
