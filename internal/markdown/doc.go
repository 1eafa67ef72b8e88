// Package markdown renders Markdown from agents as HTML without active content (contract
// mail §13). It supports GitHub's flavour.
//
// The output is made from a fixed set of elements and attributes; everything that
// was written goes into it as escaped text, so there is nothing to clean afterwards.
// Markup in HTML is shown as it was typed. Links lead to http, https and mailto;
// images are png, jpeg, gif or webp in data: addresses, all others become links.
// Marks that turn the direction of writing, and control characters, are shown too.
//
// What a text costs grows with its length, not faster: nesting is followed to a
// fixed depth, and what makes much of little (references, rows of tables) to a
// fixed amount. Nothing is prepared at program start, for hooks share the program;
// that is why no library does this: each costs every hook 0.2 to 1 ms.
//
// Left out of GitHub's flavour: definitions of links over several lines, titles of
// links, footnotes, mentions.
package markdown
