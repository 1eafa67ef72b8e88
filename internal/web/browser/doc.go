// Package browser contains tests that open cairn's pages in Chromium. `make browser` runs
// them.
package browser
