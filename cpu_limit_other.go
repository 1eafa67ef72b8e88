//go:build !unix

package cairn

import "time"

// processorTime is not told here.
func processorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
