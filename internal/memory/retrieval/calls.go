package retrieval

import (
	"cairn/internal/memory"
	"cairn/internal/memory/embedding"
)

// Retrieval holds the calls that search memories and maintain the vectors of their entries.
type Retrieval struct {
	*memory.Kernel
	embedder *embedding.Client // nil for none
}

// New returns the calls of this package over a kernel.
func New(k *memory.Kernel) *Retrieval {
	return &Retrieval{k, embedding.New(k.Config.Settings.EmbedURL, k.Config.Settings.EmbedModel)}
}
