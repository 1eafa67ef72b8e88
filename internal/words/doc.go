// Package words splits texts into searchable words and translates queries into FTS5's query
// language (contract observations §8.1). Every part that searches uses it.
package words
