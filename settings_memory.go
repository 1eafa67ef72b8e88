package cairn

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"cairn/internal/memory"
	"cairn/internal/redact"
	"cairn/internal/replica"
	"cairn/internal/settings"
)

// defaultHubTimeout is the timeout of a call of the hub (memories §10.3).
const defaultHubTimeout = 30 * time.Second

func hubTimeout(w *settings.Work) time.Duration {
	return cmp.Or(settings.Seconds(w.Hub.TimeoutS), defaultHubTimeout)
}

// checkMemory returns the first number of memory and hub that is out of range, nil if there
// is none.
func checkMemory(w *settings.Work) *settings.KeyError {
	if err := memoryConfig(w, nil).Settings.Check(); err != nil {
		key, why, _ := strings.Cut(err.Error(), " ")
		return &settings.KeyError{Key: key, Why: why}
	}
	if n := settings.Value(w.Hub.Batch); n > replica.MaxPushItems {
		return &settings.KeyError{Key: "hub.batch", Why: fmt.Sprintf("must be from 1 to %d", replica.MaxPushItems)}
	}
	return nil
}

// memoryConfig returns the settings of the memories part.
func memoryConfig(w *settings.Work, filter *redact.Filter) memory.Config {
	m, out := &w.Memory, memory.Config{Settings: memory.Defaults()}
	if !settings.IsOff(m.Redact) {
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
	out.Settings.PromptsDir, out.Settings.EmbedURL = settings.Value(m.PromptsDir), settings.Value(m.EmbedURL)
	out.Settings.EmbedModel = cmp.Or(settings.Value(m.EmbedModel), out.Settings.EmbedModel)
	if m.SearchAlpha != nil {
		out.Settings.SearchAlpha = *m.SearchAlpha
	}
	return out
}
