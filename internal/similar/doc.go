// Package similar returns words with nearly the same meaning. A question then finds what a session
// said in other words.
//
// words.txt contains 11,551 stems of English words (see words.Key), sorted, one per line. near.bin
// contains a record for each stem, in the same order. A record begins with the number of
// neighbours (one byte, at most 12). Each neighbour has its line number in words.txt (two bytes,
// big-endian, from 0) and its likeness (one byte, 255 for 1). The nearest neighbour comes first.
// No likeness is below 0.5.
//
// # Source
//
// The table was computed from the sentence model all-MiniLM-L6-v2 (sentence-transformers, Apache
// License 2.0). Each word of the model's own vocabulary with three letters or more was embedded
// alone. Vectors of words with the same stem were averaged, weighted by 1/rank in the vocabulary.
// The mean and the first two principal components were removed, and the next 128 components were
// kept. Likeness is the cosine. No questions or sessions were used.
package similar
