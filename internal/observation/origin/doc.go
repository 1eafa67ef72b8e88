// Package origin finds the session that wrote a line, edited a file or created a commit.
//
// To find the author of a line, it compares the hashes of the lines that edits wrote. It undoes
// the edits of a file one by one, newest first. It finds a commit by its hash, else by its time
// and subject.
package origin
