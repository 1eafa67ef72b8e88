package documents

import (
	"testing"

	"cairn/internal/store/storetest"
)

// TestDocumentsHoldOverEncryptedStores runs the SQL of documents again, over the driver
// and the files of encrypted stores.
func TestDocumentsHoldOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestEveryDocumentComesBackFromItsRowsAndFromTheLog")
}
