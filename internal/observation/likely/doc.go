// Package likely predicts which files a session will read or change.
//
// A file's score is a sum of logarithms over what speaks for it: edits and reads of earlier
// sessions, the branch, and the words of the prompt. Measured on a month of real sessions, a
// session is shown 45 % of the files that it goes on to edit, and 56 % after its first prompt.
// The score of the context's table alone finds 28 %.
package likely
