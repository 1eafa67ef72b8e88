// Package looks decides from the characters of a word alone what it looks like: random text,
// a chosen password, a placeholder, a reference in code, a public id, a word of a seed phrase.
//
// Letter sequences that are rare in language are evidence of randomness (bigrams.go). Random
// but public ids are not (public.go). The package redact adds what surrounds the word.
package looks
