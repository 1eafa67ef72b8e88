// Package editlines hashes the lines that an edit wrote, so that the author of a line can be
// found later without storing the text.
//
// The stored form is one byte of flags, then four bytes for each line: 31 bits of a salted hash,
// and one bit that marks lines the edit added. A line is folded before it is hashed, so that a
// formatter does not change its hash. Each store has its own salt. So backups contain the hashes,
// but exports, archives and hubs never do.
package editlines
