package observation

// Each row of an edit or a write has a list of line hashes in the table
// observation_lines. The list contains the lines of the passages that the call wrote,
// in order: 31 bits of a salted hash and one bit for lines that the call added. No text
// is stored. The rows of the table are deleted with their observations. They are in
// backups, but never in exports, archives or hubs: the salt is the store's own.

// Limits of the lines of one call.

// Flags of the lines of one call.
