package cli

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/store"
)

// toolset is a group of tools that is served or left out as a whole.
type toolset struct {
	name         string
	tools        []mcp.Tool
	instructions string         // how to use them together
	lean         string         // the same for those of the lean profile
	project      []string       // arguments that name a call's project, the likeliest first; see httpapi.Toolset
	resources    []mcp.Resource // besides the context
}

func (q questions) toolsets(profile string) []toolset {
	options := mcp.MailOptions{Keyring: q.keyring, Log: q.log}
	return []toolset{
		{
			name: recallToolset, tools: []mcp.Tool{mcp.RecallTool(q.recall)}, instructions: recallInstructions, lean: recallInstructions,
			project: []string{"project"},
		},
		{
			name: "observations", tools: mcp.ObservationTools(q.observations()), instructions: observationInstructions,
			lean: leanObservationInstructions, project: []string{"project"},
		},
		{
			name: "records", tools: append(mcp.RecordTools(q.cairn.Records(), q.project), mcp.WhyTool(q.cairn.Why, q.project)),
			instructions: recordInstructions, lean: leanRecordInstructions, project: []string{"project_id", "id"},
		},
		{
			name: "mail", tools: mcp.MailProfile(mcp.MailTools(q.cairn.Mail(), options), profile), instructions: mailInstructions(profile),
			project: []string{"project_key", "human_key"}, resources: mcp.MailResources(q.cairn.Mail(), options),
		},
		{
			name: "memories", tools: mcp.MemoryTools(q.cairn.Memories(), q.project), instructions: memoryInstructions,
			lean: leanMemoryInstructions, project: []string{"project"},
		},
	}
}

// recallToolset is the toolset of the tool recall, which every surface has.
const recallToolset = "recall"

// surface is which tools a server offers.
type surface struct {
	toolsets []string // by name; none for all
	profile  string   // one of cairn.Profiles; "" for that of the settings
}

// flags adds the flags that choose a surface.
func (s *surface) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.toolsets, "toolsets", nil, "only these tools and recall, by toolset: observations,memories,records,mail (default all)")
	cmd.Flags().StringVar(&s.profile, "profile", "", "full; core, messaging or minimal: less of mail; lean: the few tools that are\nworth their tokens in every session (default mcp.profile of the settings, else full)")
}

// sets are the toolsets of q that the surface shows.
func (s surface) sets(q questions) ([]toolset, error) {
	profile := s.profile
	if profile == "" {
		profile = q.cairn.Profile()
	}
	if !slices.Contains(cairn.Profiles(), profile) {
		return nil, fault.Newf(fault.Invalid, "usage", "there is no profile %q", profile).WithHint("there are " + strings.Join(cairn.Profiles(), ", "))
	}
	return s.of(q.toolsets(profile), profile == "lean")
}

// of picks the toolsets that were asked for. Of those that are lean some have no
// tools left, and are shown only if they were asked for by name.
func (s surface) of(all []toolset, lean bool) ([]toolset, error) {
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
		if len(s.toolsets) > 0 && t.name != recallToolset && !slices.Contains(s.toolsets, t.name) {
			continue
		}
		if lean {
			t.tools, t.instructions = mcp.Lean(t.tools), t.lean
		}
		if len(t.tools) == 0 && len(s.toolsets) == 0 {
			continue
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
		Args:    noArgs,
		RunE: p.using(store.Command, func(_ *cobra.Command, c *cairn.Cairn, _ []string) error {
			sets, err := chosen.sets(questions{cairn: c})
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
		}),
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
