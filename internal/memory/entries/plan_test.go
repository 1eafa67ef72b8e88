package entries_test

import (
	"testing"

	"cairn/internal/memory/entries"
	"cairn/internal/memory/memorytest"
)

func TestHotStatementsSearchByAnIndexAndDoNotSort(t *testing.T) {
	t.Parallel()
	memorytest.NoScans(t, entries.HotStatements)
}
