// Package markdown renders Markdown from agents as HTML without active content (contract
// mail §13). It supports GitHub's flavour.
//
// goldmark parses and renders, without its parsers of HTML, so that HTML in a text is shown
// as it was typed. Every tag of the result is then compared with a short list of elements,
// attributes and values; a text with any other tag is shown as it was typed. Links lead to http, https and mailto; images are png, jpeg, gif or webp in
// data: addresses, all others become links. Characters that change the direction of
// writing, and control characters, are shown by their numbers.
//
// # Why: limits
//
// A text that was made for it can be expensive: references and rows of tables make much
// output of little text, deep nesting is slow in a browser, and goldmark's time grows with
// the square of unfinished emphasis, links and quotes. So each has a fixed limit. A text
// above a limit of time, or of more than 128 KiB, is shown as it was typed.
package markdown
