// Package assist finds help during a turn: earlier rows that a prompt is about, the last change
// of a file before a tool touches it, and the last failure of a command before it runs again
// (observations §9.2).
//
// Help has a budget of CPU time and of wall time. When the budget is used up, it returns what it
// has found by then.
package assist
