// Package exchange is the file in which cairn hands a project from one store to
// another: JSON Lines with a header and a trailer that makes damage visible. It
// knows lines and their framing; what stands in them is the parts' affair.
//
// FORMAT.md beside this file describes the format for people and programs.
package exchange
