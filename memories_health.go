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

// MemoryHealth says whether the memories can be used (memories §3, health). How busy this
// process is, and its store, is another matter: HealthCheck.
type MemoryHealth struct {
	Status      string            `json:"status"`          // Healthy or Unhealthy
	Cause       string            `json:"cause,omitempty"` // the code of the error that makes it unhealthy
	Timestamp   string            `json:"timestamp"`       // RFC 3339, UTC
	Version     string            `json:"version"`
	Hub         string            `json:"hub"` // the URL of the hub, "" without one
	Replication ReplicationHealth `json:"replication"`
}

// Health looks at the store and, with probe, asks the hub, for three seconds at most. A
// store that is not there yet is healthy. A hub that does not answer leaves the device
// healthy: it works offline, and Replication says so.
func (m Memories) Health(ctx context.Context, version string, probe bool) MemoryHealth {
	h := MemoryHealth{Status: Healthy, Timestamp: time.Now().UTC().Format(time.RFC3339Nano), Version: version}
	var err error
	if h.Hub, h.Replication, err = m.cairn.Replication().Health(ctx, probe); err != nil {
		h.Status, h.Cause = Unhealthy, fault.As(err).Code
	}
	return h
}
