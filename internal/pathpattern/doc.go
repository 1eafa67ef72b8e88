// Package pathpattern is the pattern language of file reservations (mail §7):
// which paths a pattern covers, and whether two patterns have a path in common.
// It reads no disk and knows no repository; whoever calls says how absolute
// paths become relative and whether case counts.
//
// # Paths
//
// A path is one or more segments divided by slashes, relative to the root of a
// worktree. A segment is one or more characters (Unicode code points) without
// "/", `\` and NUL, and is neither "." nor "..". Patterns and paths are compared
// in NFC, and where case does not count by Unicode's simple case folding.
//
// # Patterns
//
//   - A segment without wildcards stands for itself.
//   - Within a segment "*" stands for any number of characters, none included,
//     "?" for one, "[a-z]" for one of a class, "[!a]" (also "[^a]") for one
//     outside it. "]" as the first of a class and "-" at either end are members.
//     There is no escape and there are no braces: "{a,b}" stands for itself, as
//     does a "[" that is never closed within its segment.
//   - A segment "**" stands for any number of segments, none included: "a/**/b"
//     covers a/b, and "a/**" covers a as well as all below it. In other company
//     two stars are one: "a**b" is "a*b", "***" is "*".
//   - A last segment without wildcards covers itself and everything below:
//     "src" is the same as "src/**". One with wildcards does not descend: "*.go"
//     covers files at the top only, "src/*" the entries of src but nothing deeper.
//   - "." is the whole tree.
//   - A pattern with a class is read a second time with its brackets as plain
//     characters, and covers what either reading covers. So the name of an
//     existing file is always a pattern that covers it: "app/[id]/page.tsx"
//     protects the folder of that name, not just app/i and app/d.
//   - Names that begin with "tool://", "resource://" or "service://" are no
//     paths: each is met by the same name only, byte by byte.
//
// # Time
//
// Parse takes time proportional to the text; the letters of a class are folded
// one by one, up to a limit (see maxCased). Matches and Overlap compare no two
// elements of their two sides twice in one reading, so they take at most
// 4 × bytes × bytes steps, whatever the number of stars; of a pair at the limits
// that is half a millisecond, and twice to thrice that if both hold classes.
package pathpattern
