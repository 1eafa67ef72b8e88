package memory

import (
	"net/url"
	"time"

	"cairn/internal/fault"
)

// Settings are the settings of memories §14. The zero value is not usable; Defaults returns the
// defaults.
type Settings struct {
	Shards          int           // memory.shards
	QueueLen        int           // memory.queue_len, the maximum number of waiting jobs of a shard
	EnqueueTimeout  time.Duration // memory.enqueue_timeout_ms
	MaxContextChars int           // memory.max_context_chars, code points
	DeleteTimeout   time.Duration // memory.delete_timeout_ms
	RetentionDays   int           // memory.retention_days
	RetentionMB     int           // memory.retention_mb, of entries and contexts
	PurgeChunk      int           // memory.purge_chunk, rows per transaction
	PromptsDir      string        // memory.prompts_dir, "" for no overrides
	SearchAlpha     float64       // memory.search_alpha, the share of vectors in a hybrid score: 0–1
	EmbedURL        string        // memory.embed_url, "" for no embedder
	EmbedModel      string        // memory.embed_model
}

// Defaults returns the default settings (memories §14).
func Defaults() Settings {
	return Settings{
		Shards: 256, QueueLen: 128, EnqueueTimeout: 100 * time.Millisecond, MaxContextChars: 5000,
		DeleteTimeout: 10 * time.Second, RetentionDays: 30, RetentionMB: 500, PurgeChunk: 10_000,
		SearchAlpha: 0.6, EmbedModel: "nomic-embed-text",
	}
}

// CodeSetting is the code of the error (Invalid) for a setting out of its range.
const CodeSetting = "invalid_setting"

// Check returns an error for the first setting that is out of range; nil if all are valid.
func (s Settings) Check() error {
	for _, n := range [...]struct {
		key               string
		value, least, top int64
	}{
		{"memory.shards", int64(s.Shards), 1, 65_536},
		{"memory.queue_len", int64(s.QueueLen), 1, 65_536},
		{"memory.enqueue_timeout_ms", s.EnqueueTimeout.Milliseconds(), 0, 60_000},
		{"memory.max_context_chars", int64(s.MaxContextChars), 1, 100_000},
		{"memory.delete_timeout_ms", s.DeleteTimeout.Milliseconds(), 0, 300_000},
		{"memory.retention_days", int64(s.RetentionDays), 1, 36_500},
		{"memory.retention_mb", int64(s.RetentionMB), 1, 1 << 20},
		{"memory.purge_chunk", int64(s.PurgeChunk), 1, 1_000_000},
	} {
		if n.value < n.least || n.value > n.top {
			return fault.Newf(fault.Invalid, CodeSetting, "%s is %d; it must be from %d to %d", n.key, n.value, n.least, n.top).
				WithHint("change it in the settings or the environment")
		}
	}
	if !(s.SearchAlpha >= 0 && s.SearchAlpha <= 1) {
		return fault.Newf(fault.Invalid, CodeSetting, "memory.search_alpha is %v; it must be between 0 and 1", s.SearchAlpha).
			WithHint("change it in the settings or the environment")
	}
	if at, err := url.Parse(s.EmbedURL); s.EmbedURL != "" && (err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https") {
		return fault.Newf(fault.Invalid, CodeSetting, "memory.embed_url %q is not an http or https URL", s.EmbedURL).
			WithHint("give the complete URL, such as http://localhost:11434/api/embeddings")
	}
	return nil
}
