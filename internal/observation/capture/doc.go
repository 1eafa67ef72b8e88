// Package capture turns the events of agent programs into rows of the store: live ones that a
// hook reports, and those of transcripts that an import reads. It also stores a person's marks
// and pins.
//
// An event is first made into drafts: texts are redacted, then cut, without a transaction. One
// transaction then stores session, prompt, rows, searchable words and change.
//
// A delivery that is stored already adds nothing. Ids decide where they exist. Elsewhere equal
// calls are counted: the nth equal call of a transcript is known if the session holds n.
package capture
