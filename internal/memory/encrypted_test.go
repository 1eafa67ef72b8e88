package memory_test

import (
	"testing"

	"cairn/internal/store/storetest"
)

func TestIdempotencyHoldsOverEncryptedStores(t *testing.T) {
	t.Parallel()
	storetest.RunEncrypted(t, "TestACallUnderOneKeyIsDoneOnce")
}
