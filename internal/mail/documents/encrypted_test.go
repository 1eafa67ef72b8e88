package documents

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestDocumentsHoldOverEncryptedStores runs the SQL of this package on encrypted stores, with
// their driver and files.
func TestDocumentsHoldOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestEveryDocumentComesBackFromItsRowsAndFromTheLog")
}
