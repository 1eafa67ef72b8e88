package replication_test

import (
	"testing"

	"cairn/internal/memory/memorytest"
	"cairn/internal/memory/replication"
)

func TestHotStatementsSearchByAnIndexAndDoNotSort(t *testing.T) {
	t.Parallel()
	memorytest.NoScans(t, replication.HotStatements)
}
