// Package editlines hashes the lines that an edit wrote, so that the author of a line can be
// found later without storing the text.
//
// The stored form is one byte of flags, then four bytes for each line: 31 bits of a salted hash
// and one bit for lines that the edit added. A line is folded before it is hashed, so that a
// formatter does not change its hash. The salt belongs to the store, so the hashes are in
// backups, but never in exports, archives or hubs.
package editlines
