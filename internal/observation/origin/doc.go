// Package origin finds the session behind a line, an edit or a commit.
//
// The author of a line is found by the hashes of the lines that edits wrote: the edits of a file
// are taken back one by one, the newest first. A commit is found by its hash, else by its time
// and subject.
package origin
