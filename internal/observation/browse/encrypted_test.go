package browse

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestSuiteHoldsOverEncryptedStores runs all tests of this package again with encrypted stores.
// It checks their SQL with the driver and the files of such stores.
func TestSuiteHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t)
}
