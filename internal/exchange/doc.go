// Package exchange reads and writes the file of `cairn export`: JSON Lines with a header
// and a trailer that makes damage visible. It handles lines and their framing. The parts
// define the content of the lines.
//
// FORMAT.md describes the format.
package exchange
