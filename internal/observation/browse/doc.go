// Package browse reads rows, sessions and files for display to users and tools: single rows,
// timelines, traces, the history of a file, activity and counts.
//
// Results for models have compact forms of about 2,000 tokens.
package browse
