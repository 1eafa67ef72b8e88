// Package shape contains the secrets that vendors give a recognisable form: tables of their
// prefixes, alphabets and lengths, and the functions that match them in a text.
//
// A shape is described by parts in a small language, see Match. Nothing is compiled. The
// tables follow the rules of gitleaks v8.30.1 (MIT licence).
package shape
