package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn/internal/fault"
	"cairn/internal/mcp"
)

// toolset is a group of tools that is served or left out as a whole.
type toolset struct {
	name         string
	tools        []mcp.Tool
	instructions string   // how to use them together
	lean         string   // the same for those of the lean profile
	project      []string // arguments that name a call's project, the likeliest first; see httpapi.Toolset
}

func (q questions) toolsets() []toolset {
	return []toolset{
		{
			"observations", mcp.ObservationTools(q.observations()), observationInstructions, leanObservationInstructions,
			[]string{"project"},
		},
		{
			"records", append(mcp.RecordTools(q.cairn.Records(), q.project), mcp.WhyTool(q.cairn.Why, q.project)),
			recordInstructions, leanRecordInstructions, []string{"project_id", "id"},
		},
	}
}

// surface is which tools a server offers.
type surface struct {
	toolsets []string // by name; none for all
	profile  string   // full or lean
}

// flags adds the flags that choose a surface.
func (s *surface) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.toolsets, "toolsets", nil, "only these tools, by toolset: observations,records (default all)")
	cmd.Flags().StringVar(&s.profile, "profile", "full", "full, or lean: the few tools that are worth their tokens in every session")
}

// of picks what the surface shows of the toolsets.
func (s surface) of(all []toolset) ([]toolset, error) {
	if s.profile != "full" && s.profile != "lean" {
		return nil, fault.Newf(fault.Invalid, "usage", "there is no profile %q", s.profile).WithHint("full or lean")
	}
	var names []string
	for _, t := range all {
		names = append(names, t.name)
	}
	for _, name := range s.toolsets {
		if !slices.Contains(names, name) {
			return nil, fault.Newf(fault.Invalid, "usage", "there is no toolset %q", name).WithHint("there are " + strings.Join(names, ", "))
		}
	}
	var chosen []toolset
	for _, t := range all {
		if len(s.toolsets) > 0 && !slices.Contains(s.toolsets, t.name) {
			continue
		}
		if s.profile == "lean" {
			t.tools, t.instructions = mcp.Lean(t.tools), t.lean
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// toolCost is what the definition of a tool costs a model's context.
type toolCost struct {
	Name   string `json:"name"`
	About  string `json:"description"`
	Tokens int    `json:"tokens"`
}

// toolsetCost is what a toolset costs.
type toolsetCost struct {
	Name   string     `json:"name"`
	Tokens int        `json:"tokens"`
	Tools  []toolCost `json:"tools"`
}

// surfaceCost is what all toolsets cost.
type surfaceCost struct {
	Tokens   int           `json:"tokens"`
	Toolsets []toolsetCost `json:"toolsets"`
}

func costOf(sets []toolset) (all surfaceCost, err error) {
	var tools []mcp.Tool
	for _, s := range sets {
		set := toolsetCost{Name: s.name, Tools: []toolCost{}}
		for _, t := range s.tools {
			n, err := mcp.Tokens([]mcp.Tool{t})
			if err != nil {
				return all, err
			}
			set.Tools = append(set.Tools, toolCost{t.Name, t.Description, n})
		}
		if set.Tokens, err = mcp.Tokens(s.tools); err != nil {
			return all, err
		}
		all.Toolsets = append(all.Toolsets, set)
		tools = append(tools, s.tools...)
	}
	all.Tokens, err = mcp.Tokens(tools)
	return all, err
}

func toolsCommand(p *Process) *cobra.Command {
	var chosen surface
	var asJSON, tokens bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the MCP tools of serve",
		Long: `tools lists what serve offers with the same --toolsets and --profile. With --tokens
it says what each definition costs an agent's context, in every session: a quarter
of its bytes, rounded up.`,
		Example: "  cairn tools --tokens\n  cairn tools --tokens --profile lean",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			sets, err := chosen.of(questions{}.toolsets())
			if err != nil {
				return err
			}
			cost, err := costOf(sets)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(p.Out, cost)
			}
			return p.printTools(cost, tokens)
		},
	}
	chosen.flags(cmd)
	cmd.Flags().BoolVar(&tokens, "tokens", false, "print tokens per tool, per toolset and in all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, always with tokens")
	return cmd
}

func (p *Process) printTools(cost surfaceCost, tokens bool) error {
	w := tabwriter.NewWriter(p.Out, 0, 4, 2, ' ', 0)
	for _, s := range cost.Toolsets {
		for _, t := range s.Tools {
			if tokens {
				fmt.Fprintf(w, "%s\t%s\t%d\n", s.Name, t.Name, t.Tokens)
			} else {
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, t.Name, t.About)
			}
		}
		if tokens {
			fmt.Fprintf(w, "%s\tall\t%d\n", s.Name, s.Tokens)
		}
	}
	if tokens {
		fmt.Fprintf(w, "all\t\t%d\n", cost.Tokens)
	}
	return w.Flush()
}
