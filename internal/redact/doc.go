// Package redact removes secrets from text before it is stored, logged or sent (contract
// observations §7).
//
// A Filter is created from Options and is safe for concurrent use. It replaces secrets
// with "[REDACTED]" (Mark), and sections that a user marked as private with "[PRIVATE]"
// (PrivateMark). The name, user or host around a secret is kept. A text without secrets is
// returned as the same string, without a copy.
//
// A text is checked in these passes:
//
//   - blocks.go finds private sections and key blocks, which may span lines.
//   - literals.go scans the text once and looks up every three bytes in a small hash
//     table of literals. Only at a literal does a rule read further: known shapes and
//     vendors' named keys (package shape), named values (named.go), headers, URLs,
//     commands, calls (call.go), sentences (prose.go) and piped standard input (stdin.go).
//   - words.go checks long words for entropy and for letter sequences that are rare in
//     language (package looks). It skips random but public ids. It compares runs of short
//     words with the list of seed phrases (seed.go).
//
// The rules are plain Go data and hand-written scanners. Nothing is compiled or
// initialised at program start. The shapes cover the default rules of gitleaks v8.30.1
// (MIT licence). The nested module in oracle/ compares them with gitleaks.
//
// Processing time is linear in the length of the text for any content.
package redact
