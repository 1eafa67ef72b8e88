// Package oneline fits stored text into one line of a text that a model or a person reads.
package oneline
