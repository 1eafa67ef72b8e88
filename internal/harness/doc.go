// Package harness describes the coding agents: what their hooks send, the layout of their
// transcripts and where they store them. It converts both into observation.Event values.
// No other package contains code for a single agent.
//
// Everything read here comes from outside and changes without notice. Whatever
// is known is used, whatever is not is left out, and no field of a wrong type
// is an error. Every text of an event is valid UTF-8 without NUL: broken bytes,
// lone surrogates and NUL become U+FFFD. A text over 2 MiB comes as its first
// and last MiB.
//
// The harnesses are those of Harnesses, the one table (contract observations §4.2,
// §4.3); their transcripts are those of §12. What each of them does in its own way, the
// rest of the product asks of its Harness.
//
// What cannot be known: Gemini CLI's hooks send no ids of calls, and Cursor's
// transcripts contain neither ids nor results, and times only in minutes; there
// the content decides what is the same (observation.Match). Whether a call in a
// transcript of Cursor failed is not in the transcript. Windsurf's transcripts are
// encrypted, and its hooks do not report the result of a command.
package harness
