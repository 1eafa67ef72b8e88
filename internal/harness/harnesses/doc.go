// Package harnesses lists the agent programs that cairn supports, and finds the one that a payload or a
// transcript belongs to.
//
// All returns the table (contract observations §4.2, §4.3). Hook reads a payload, HookOutput
// returns the answer to it, and ReadTranscript reads a transcript (§12), whichever harness wrote it.
// Other packages read the differences between agents from the harness.Harness values.
package harnesses
