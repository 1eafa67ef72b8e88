// Package lazyjson reads JSON that other programs wrote, and decodes only the parts that are used.
//
// A payload is checked once. Then a Value is a part of it, and the methods of a Value never fail: a
// member that is missing or of a wrong type reads as empty. Every text is valid UTF-8 without NUL:
// invalid bytes, lone surrogates and NUL become U+FFFD. A text over 2 MiB is cut to its first and
// last MiB. A payload over 64 MiB is shortened while it is read.
package lazyjson
