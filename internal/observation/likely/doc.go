// Package likely predicts which files a session will read or change.
//
// A file's score is a sum of logarithms of its evidence: edits and reads in earlier sessions, the
// branch, and the words of the prompt. It was measured on a month of real sessions. A session is
// shown 45 % of the files that it edits later, and 56 % after its first prompt. The score used for
// the tables of the context finds only 28 %.
package likely
