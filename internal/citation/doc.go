// Package citation finds citations of code in prose, such as
// internal/cart/total.go#L10-L14. It stores the text of the cited lines and reports later
// whether a working tree still contains it (contract records §4.2, §7 "drift"). It does not
// depend on records or the store.
package citation
