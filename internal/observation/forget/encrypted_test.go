package forget

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestSuiteHoldsOverEncryptedStores runs all tests of this package again with the driver and the
// files of encrypted stores.
func TestSuiteHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t)
}
