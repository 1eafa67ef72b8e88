// Package sessionstart builds the text that a session gets when it starts: the last session, the
// user's standing wishes, recent intents, checks, the best rows and likely files (observations
// §9.1, amendments §A.5).
//
// Sections are read first, as lines. Then lines are cut, those that are needed least first,
// until the text has the size that it should have.
package sessionstart
