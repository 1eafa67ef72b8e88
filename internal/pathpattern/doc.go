// Package pathpattern implements the patterns of file reservations (mail §7): which paths
// a pattern covers, and whether two patterns have a path in common. It reads no files.
// The caller determines how absolute paths become relative and whether case matters.
//
// # Paths
//
// A path is one or more segments separated by slashes, relative to the root of a
// worktree. A segment is one or more characters (Unicode code points) without "/", `\`
// and NUL, and is neither "." nor "..". Patterns and paths are compared in NFC. If case
// does not matter, Unicode's simple case folding applies.
//
// # Patterns
//
//   - A segment without wildcards is literal text.
//   - Within a segment "*" matches any number of characters, including none,
//     "?" for one, "[a-z]" for one of a class, "[!a]" (also "[^a]") for one
//     outside it. "]" as the first of a class and "-" at either end are members.
//     There is no escape and there are no braces: "{a,b}" is literal text, as
//     does a "[" that is never closed within its segment.
//   - A segment "**" matches any number of segments, including none: "a/**/b"
//     covers a/b, and "a/**" covers a as well as all below it. Inside a segment
//     two stars are one: "a**b" is "a*b", "***" is "*".
//   - A last segment without wildcards covers itself and everything below:
//     "src" is the same as "src/**". One with wildcards does not descend: "*.go"
//     covers files at the top only, "src/*" the entries of src but nothing deeper.
//   - "." is the whole tree.
//   - A pattern with a class is read a second time with its brackets as plain
//     characters, and covers what either reading covers. So the name of an
//     existing file is always a pattern that covers it: "app/[id]/page.tsx"
//     protects the folder of that name, not just app/i and app/d.
//   - Names that begin with "tool://", "resource://" or "service://" are not
//     paths: each matches only the same name, byte by byte.
//
// # Time
//
// Parse takes time proportional to the text; it folds the letters of a class one by one,
// up to a limit (see maxCased). Matches and Overlap compare each pair of elements at most
// twice in one reading. So they take at most 4 × bytes × bytes steps, whatever the number
// of stars. For a pair at the limits that is half a millisecond, and up to three times
// that if both have classes.
package pathpattern
