package settings

import (
	"fmt"
	"maps"
	"slices"

	"cairn/internal/observation"
)

// Retention are the retention times.
type Retention struct {
	Days       map[string]any `toml:"days"`        // type → days, or "never"
	OutputDays any            `toml:"output_days"` // of outputs: days, or "never"
}

// retention applies the settings to the defaults. An unknown type is an error, and so is a
// value other than "never" or a whole number of days, at least 1. The error names the key.
func (r Retention) retention() (observation.Retention, error) {
	out := observation.DefaultRetention()
	for _, name := range slices.Sorted(maps.Keys(r.Days)) {
		days, whole := r.Days[name].(int64)
		switch {
		case !observation.IsType(name):
			return nil, KeyError{"retention.days." + name, "is not a type of rows"}
		case r.Days[name] == "never":
			delete(out, name)
		case !whole || days < 1 || days > maxRetentionDays:
			return nil, KeyError{"retention.days." + name, fmt.Sprintf(`must be a number of days from 1 to %d, or "never"`, maxRetentionDays)}
		default:
			out[name] = int(days)
		}
	}
	return out, nil
}

// outputDays returns the number of days after which outputs expire, 0 for never.
func (r Retention) outputDays() (int, error) {
	switch days, whole := r.OutputDays.(int64); {
	case r.OutputDays == nil:
		return observation.DefaultOutputDays, nil
	case r.OutputDays == "never":
		return 0, nil
	case !whole || days < 1 || days > maxRetentionDays:
		return 0, KeyError{"retention.output_days", fmt.Sprintf(`must be a number of days from 1 to %d, or "never"`, maxRetentionDays)}
	default:
		return int(days), nil
	}
}

// maxRetentionDays is a thousand years.
const maxRetentionDays = 365_000
