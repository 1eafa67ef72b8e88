package search

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestSuiteHoldsOverEncryptedStores runs all tests of this package again on encrypted stores, with
// their driver and file format.
func TestSuiteHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t)
}
