// Package markdown renders Markdown from agents as HTML without active content (contract
// mail §13). It supports GitHub's flavour.
//
// goldmark parses and renders. Its HTML parsers are disabled, so that HTML in a text is shown
// literally. Every tag of the result is then compared with a short list of elements, attributes
// and values. A text with any other tag is shown literally. Links may have the schemes http,
// https and mailto. Images are png, jpeg, gif or webp in data: URLs; all others become links.
// Bidirectional control characters and other control characters are shown by their code points.
//
// # Why: limits
//
// A malicious text can be expensive. References and rows of tables produce much output from
// little text, and deep nesting is slow in a browser. goldmark's time grows with the square of
// unfinished emphasis, links and quotes. So each has a fixed limit. A text above one of the
// limits that bound the time, or of more than 128 KiB, is shown literally.
package markdown
