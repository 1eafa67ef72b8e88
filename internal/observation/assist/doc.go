// Package assist finds help during a turn (observations §9.2). It finds earlier rows related to a
// prompt, the last change of a file before a tool touches it, and the last failure of a command
// before it runs again.
//
// Help has a budget of CPU time and of wall time. When the budget is used up, it returns what it
// has found so far.
package assist
