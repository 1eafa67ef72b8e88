// Package harness contains what all agent programs have in common: the description of one, and the
// events, calls, outcomes and transcripts that its package reads.
//
// A harness is an agent program such as Claude Code. Each one has a package below this one, which
// describes what its hooks send, the layout of its transcripts and where it stores them. It
// converts both into observation.Event values. Package harnesses lists the harnesses. No other package
// contains code for a single agent.
//
// Many harnesses send Claude Code's payloads, or nearly the same. What they share is here, under
// Claude Code's names of events and tools (contract observations §4.2, §4.3). Transcripts are
// described in §12.
//
// All input comes from other programs and changes without notice. Known fields are used and
// unknown fields are ignored. A field of a wrong type is not an error.
package harness
