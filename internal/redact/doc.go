// Package redact removes secrets from text before it is stored, logged or sent (contract
// observations §7).
//
// A Filter is created from Options and can be used by any number of goroutines. It
// replaces secrets with "[REDACTED]" (Mark) and sections that a user marked as private
// with "[PRIVATE]" (PrivateMark). The name, user or host around a secret stays. A text
// without secrets is returned as the very same string.
//
// A text is checked in these passes:
//
//   - blocks.go: private sections and key blocks, which may span lines;
//   - literals.go: one walk over the text looks up every three bytes in a small
//     hash table of literals; only at a literal does a rule look
//     closer: known shapes (shape_table.go), vendors' named keys
//     (vendor_table.go), named values (named.go), headers, URLs, commands,
//     calls (call.go), sentences (prose.go), what is piped in (stdin.go);
//   - words.go: long words are weighed by entropy and by how unlike language
//     their letters follow one another (bigrams.go), except random ids that are
//     public (public.go); rows of short words are compared with the list of seed
//     phrases (seed.go).
//
// The rules are plain Go data and hand-written scanners. Nothing is compiled or
// initialised at program start. The shapes cover the default rules of gitleaks v8.30.1
// (MIT licence). The nested module in oracle/ compares them with gitleaks.
//
// Processing time is linear in the length of the text for any content.
package redact
