package capture_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestSuiteHoldsOverEncryptedStores runs all tests of this package again with encrypted stores,
// to test their SQL with that driver and its files.
func TestSuiteHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t)
}
