package memory_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/memory"
	"cairn/internal/memory/memorytest"
)

func TestSearchSettingsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*memory.Settings){
		"memory.search_alpha is 1.5":    func(s *memory.Settings) { s.SearchAlpha = 1.5 },
		"memory.search_alpha is NaN":    func(s *memory.Settings) { s.SearchAlpha = math.NaN() },
		`memory.embed_url "ftp://x/y"`:  func(s *memory.Settings) { s.EmbedURL = "ftp://x/y" },
		`memory.embed_url "embeddings"`: func(s *memory.Settings) { s.EmbedURL = "embeddings" },
	} {
		s := memory.Defaults()
		change(&s)
		f := fault.As(s.Check())
		memorytest.Want(t, name, f != nil && f.Code == memory.CodeSetting && strings.HasPrefix(f.Message, name), true)
	}
	memorytest.Want(t, "the defaults", memory.Defaults().Check(), nil)
}

func TestSettingsHaveRanges(t *testing.T) {
	t.Parallel()
	if err := memory.Defaults().Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*memory.Settings){
		"memory.shards":             func(s *memory.Settings) { s.Shards = 0 },
		"memory.queue_len":          func(s *memory.Settings) { s.QueueLen = 0 },
		"memory.enqueue_timeout_ms": func(s *memory.Settings) { s.EnqueueTimeout = -time.Millisecond },
		"memory.max_context_chars":  func(s *memory.Settings) { s.MaxContextChars = 0 },
		"memory.delete_timeout_ms":  func(s *memory.Settings) { s.DeleteTimeout = time.Hour },
		"memory.retention_days":     func(s *memory.Settings) { s.RetentionDays = 0 },
		"memory.retention_mb":       func(s *memory.Settings) { s.RetentionMB = 0 },
		"memory.purge_chunk":        func(s *memory.Settings) { s.PurgeChunk = 0 },
	} {
		s := memory.Defaults()
		spoil(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s out of its range: %v", name, err)
		}
	}
}
