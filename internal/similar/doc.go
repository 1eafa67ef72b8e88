// Package similar knows which words mean nearly the same, so that a question finds what a
// session said in other words.
//
// words.txt holds 11,551 stems of English words (see words.Key), sorted, one in a line.
// near.bin holds, for each of them in this order, how many neighbours it has (one byte, up
// to 12), and of each neighbour its line in words.txt (two bytes, big-endian, from 0) and
// the likeness (one byte, 255 for 1); the nearest comes first, none is below 0.5.
//
// # Source
//
// The table was computed from the sentence model all-MiniLM-L6-v2 (sentence-transformers,
// Apache License 2.0): each word of the model's own vocabulary that has three letters or
// more was embedded alone; vectors of words with one stem were averaged, weighted by 1/rank
// in the vocabulary; the mean and the two main components were taken off, and the next 128
// components kept. Likeness is the cosine. No question and no session took part in it.
package similar
