package recordcmd

import (
	"strings"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/record"
)

func stateFlag(cmd *cobra.Command, kept *[]string, help string) {
	cmd.Flags().StringSliceVar(kept, "state", nil, help+": OPEN, LATER, RESOLVED, DISCARDED")
}

// stateOf parses a state in upper or lower case. It does not check it; an invalid state
// is rejected later.
func stateOf(s string) record.State { return record.State(strings.ToUpper(s)) }

func statesOf(names []string) (states []record.State, err error) {
	for _, name := range names {
		switch s := stateOf(name); s {
		case record.Open, record.Later, record.Resolved, record.Discarded:
			states = append(states, s)
		default:
			return nil, fault.Newf(fault.Invalid, "usage", "invalid state %q", name).
				WithHint("the states are OPEN, LATER, RESOLVED and DISCARDED")
		}
	}
	return states, nil
}
