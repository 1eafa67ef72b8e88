// Package oneline shortens stored text to one line for a model or a person.
package oneline
