// Package words turns texts into searchable words and queries into FTS5's own
// language (contract observations §8.1), for every part that searches.
package words
