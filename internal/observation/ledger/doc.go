// Package ledger keeps which rows cairn showed to a session, and which of them the session used
// (observations §9.3).
//
// It holds no text and stays on this device, so its writes append no change. Nothing is ranked
// by it.
package ledger
