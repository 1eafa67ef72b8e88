package cairn

import (
	"cmp"
	"strings"
	"time"

	"cairn/internal/memory"
	"cairn/internal/redact"
)

// memorySettings are the keys of memory (memories §14), only in the user's file. The
// environment overrides them. A nil field means the default.
type memorySettings struct {
	Shards          *int    `toml:"shards"`
	QueueLen        *int    `toml:"queue_len"`
	EnqueueTimeout  *int    `toml:"enqueue_timeout_ms"`
	MaxContextChars *int    `toml:"max_context_chars"`
	DeleteTimeout   *int    `toml:"delete_timeout_ms"`
	Redact          *bool   `toml:"redact"`
	RetentionDays   *int    `toml:"retention_days"`
	RetentionMB     *int    `toml:"retention_mb"`
	PurgeChunk      *int    `toml:"purge_chunk"`
	PromptsDir      *string `toml:"prompts_dir"`

	SearchAlpha *float64 `toml:"search_alpha"` // the share of vectors in a hybrid score
	EmbedURL    *string  `toml:"embed_url"`
	EmbedModel  *string  `toml:"embed_model"`
}

// hubSettings are a device's keys of hub (memories §14).
type hubSettings struct {
	URL         *string `toml:"url"` // replaces the address that was used to join
	Batch       *int    `toml:"batch"`
	LeaseS      *int    `toml:"lease_s"`
	TimeoutS    *int    `toml:"timeout_s"`
	OnPermanent *string `toml:"on_permanent"` // after a refused change, later changes of its memory: skip, halt
}

// defaultHubTimeout is the timeout of a call of the hub (memories §10.3).
const defaultHubTimeout = 30 * time.Second

func (s *workSettings) hubTimeout() time.Duration {
	return cmp.Or(secondsOf(s.Hub.TimeoutS), defaultHubTimeout)
}

// checkMemory returns the first number that is out of range, nil if there is none.
func (s *workSettings) checkMemory() *keyError {
	if err := s.memoryConfig(nil).Settings.Check(); err != nil {
		key, why, _ := strings.Cut(err.Error(), " ")
		return &keyError{key, why}
	}
	return nil
}

// memoryConfig returns the settings of the memories part.
func (s *workSettings) memoryConfig(filter *redact.Filter) memory.Config {
	m, out := &s.Memory, memory.Config{Settings: memory.Defaults()}
	if !isOff(m.Redact) {
		out.Filter = filter
	}
	set := func(to *int, from *int) {
		if from != nil {
			*to = *from
		}
	}
	milliseconds := func(to *time.Duration, from *int) {
		if from != nil {
			*to = time.Duration(*from) * time.Millisecond
		}
	}
	set(&out.Settings.Shards, m.Shards)
	set(&out.Settings.QueueLen, m.QueueLen)
	milliseconds(&out.Settings.EnqueueTimeout, m.EnqueueTimeout)
	set(&out.Settings.MaxContextChars, m.MaxContextChars)
	milliseconds(&out.Settings.DeleteTimeout, m.DeleteTimeout)
	set(&out.Settings.RetentionDays, m.RetentionDays)
	set(&out.Settings.RetentionMB, m.RetentionMB)
	set(&out.Settings.PurgeChunk, m.PurgeChunk)
	out.Settings.PromptsDir, out.Settings.EmbedURL = value(m.PromptsDir), value(m.EmbedURL)
	out.Settings.EmbedModel = cmp.Or(value(m.EmbedModel), out.Settings.EmbedModel)
	if m.SearchAlpha != nil {
		out.Settings.SearchAlpha = *m.SearchAlpha
	}
	return out
}
