// Package capture turns the events of agent programs into rows of the store: live events from
// hooks, and imported events from transcripts. It also stores a user's marks and pins.
//
// An event is first converted to drafts, without a transaction: texts are redacted, then cut.
// One transaction then stores the session, prompt, rows, searchable words and change.
//
// A delivery that is already stored adds nothing. Ids identify it if they exist. Otherwise equal
// calls are counted: the nth equal call of a transcript is known if the session has n equal
// rows.
package capture
