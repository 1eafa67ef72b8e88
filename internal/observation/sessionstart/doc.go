// Package sessionstart builds the text that a session gets when it starts. It contains the last
// session, the user's standing wishes, recent intents, checks, the best rows and likely files
// (observations §9.1, amendments §A.5).
//
// The package first reads all sections as lines. Then it cuts lines, the least needed first,
// until the text has its target size.
package sessionstart
