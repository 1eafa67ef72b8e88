package memory_test

import (
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
)

func TestHotStatementsSearchByAnIndexAndDoNotSort(t *testing.T) {
	t.Parallel()
	memorytest.NoScans(t, memory.HotStatements)
}
