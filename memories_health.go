package cairn

import (
	"context"
	"time"

	"cairn/internal/fault"
)

// The states of MemoryHealth.
const (
	Healthy   = "healthy"
	Unhealthy = "unhealthy" // the store cannot be opened
)

// MemoryHealth reports whether the memories can be used (memories §3, health). See HealthCheck
// for the load of the process and its store.
type MemoryHealth struct {
	Status      string            `json:"status"`          // Healthy or Unhealthy
	Cause       string            `json:"cause,omitempty"` // the code of the error that causes Unhealthy
	Timestamp   string            `json:"timestamp"`       // RFC 3339, UTC
	Version     string            `json:"version"`
	Hub         string            `json:"hub"` // the URL of the hub, "" without one
	Replication ReplicationHealth `json:"replication"`
}

// Health checks the store and, with probe, the hub for three seconds at most. A missing
// store is healthy. With an unreachable hub the device is healthy too: it works offline,
// and Replication shows it.
func (m Memories) Health(ctx context.Context, version string, probe bool) MemoryHealth {
	h := MemoryHealth{Status: Healthy, Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Version: version}
	var err error
	if h.Hub, h.Replication, err = m.cairn.Replication().Health(ctx, probe); err != nil {
		h.Status, h.Cause = Unhealthy, fault.As(err).Code
	}
	return h
}
