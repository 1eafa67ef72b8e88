// Package browser holds tests that look at cairn's pages with Chromium; `make browser`
// runs them.
package browser
