// Package citation reads citations of code in prose, such as
// internal/cart/total.go#L10-L14, keeps what the cited lines said and tells later
// whether a working tree still says it (contract records §4.2, §7 "drift"). It
// knows neither records nor the store.
package citation
