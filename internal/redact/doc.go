// Package redact takes secrets out of text before it is stored, logged or sent
// (contract observations §7).
//
// A Filter is made once from Options and then used from any number of
// goroutines. What it finds becomes "[REDACTED]" (Mark), what a user fenced off
// as private becomes "[PRIVATE]" (PrivateMark); the name, user or host around a
// secret stays. A text without secrets comes back as the very same string.
//
// How a text is judged, in one pass each:
//
//   - blocks.go: private sections and key blocks, which may span lines;
//   - literals.go: one walk over the text looks up every three bytes in a small
//     hash table of literals; only where a literal stands does a rule look
//     closer: known shapes (shape_table.go), vendors' named keys
//     (vendor_table.go), named values (named.go), headers, URLs, commands,
//     calls (call.go), sentences (prose.go), what is piped in (stdin.go);
//   - words.go: long words are weighed by entropy and by how unlike language
//     their letters follow one another (bigrams.go), except random ids that are
//     public (public.go); rows of short words are compared with the list of seed
//     phrases (seed.go).
//
// The rules are plain Go data and hand-written scanners; nothing is compiled and
// nothing is initialised when the program starts. The shapes cover the default
// rule set of gitleaks v8.30.1 (MIT licence), which the nested module in oracle/
// checks against gitleaks itself.
//
// Work is linear in the length of the text whatever it holds.
package redact
