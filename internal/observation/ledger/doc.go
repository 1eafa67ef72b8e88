// Package ledger records which rows cairn showed to a session, and which of them the session
// used (observations §9.3).
//
// The ledger contains no text and stays on this device, so its writes append no change. It does
// not affect rankings.
package ledger
