// Package browse reads rows, sessions and files for people and tools that look at them: single
// rows, timelines, traces, the history of a file, activity and counts.
//
// Forms that a model reads have compact variants of about 2,000 tokens.
package browse
