package servecmd

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"cairn"
	"cairn/internal/cli/command"
	"cairn/internal/fault"
	"cairn/internal/mcp"
	"cairn/internal/settings"
	"cairn/internal/store"
)

// toolset is a group of tools that is served as a whole or not at all.
type toolset struct {
	name         string
	tools        []mcp.Tool     // the listed tools
	all          []mcp.Tool     // all tools, also unlisted ones; the JSON mirror has these
	instructions string         // how to use them together
	lean         string         // the same for the lean profile
	project      []string       // arguments that name a call's project, the most common first; see httpapi.Toolset
	resources    []mcp.Resource // in addition to the context
}

func (q toolHandlers) toolsets(profile string) []toolset {
	options := mcp.MailOptions{Keyring: q.keyring, Log: q.log}
	sets := []toolset{
		{
			name: recallToolset, tools: []mcp.Tool{mcp.RecallTool(q.recall)}, instructions: recallInstructions, lean: recallInstructions,
			project: []string{"project"},
		},
		{
			name: "observations", tools: mcp.ObservationTools(q.observations()), instructions: observationInstructions,
			project: []string{"project"},
		},
		{
			name: "records", tools: append(mcp.RecordTools(q.cairn.Records(), q.project), mcp.WhyTool(q.cairn.Why, q.project)),
			instructions: recordInstructions, lean: leanRecordInstructions, project: []string{"project_id", "id"},
		},
		{
			name: "mail", tools: mcp.MailProfile(mcp.MailTools(q.cairn.Mail(), options), profile), instructions: mailInstructions(profile),
			lean: mailInstructions(profile), project: []string{"project_key", "human_key"}, resources: mcp.MailResources(q.cairn.Mail(), options),
		},
		{
			name: "memories", tools: mcp.MemoryTools(q.cairn.Memories(), q.project), instructions: memoryInstructions,
			lean: leanMemoryInstructions, project: []string{"project"},
		},
	}
	for i := range sets {
		sets[i].all = sets[i].tools
	}
	return sets
}

// recallToolset is the toolset of the tool recall. Every server offers it.
const recallToolset = "recall"

// surface selects the tools that a server offers.
type surface struct {
	toolsets []string // by name; empty for all
	tools    []string // exactly these; empty for the tools of the profile
	profile  string   // one of settings.Profiles; "" for the profile of the settings
}

// flags adds the flags that choose a surface.
func (s *surface) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.toolsets, "toolsets", nil, "only these toolsets, and recall: observations,memories,records,mail (default all)")
	cmd.Flags().StringSliceVar(&s.tools, "tools", nil, "exactly these tools, by name; add find_tool and call_tool to reach the others")
	cmd.Flags().StringVar(&s.profile, "profile", "", "full: all tools; core, messaging or minimal: fewer tools for mail; lean: the few tools\nthat an agent needs every day, with find_tool and call_tool for the others, for programs\nthat send all definitions with each request (default mcp.profile of the settings, else full)")
}

// sets returns the selected toolsets of q.
func (s surface) sets(q toolHandlers) ([]toolset, error) {
	profile := s.profile
	switch {
	case len(s.tools) > 0 && profile != "":
		return nil, fault.New(fault.Invalid, "usage", "--tools cannot be combined with --profile").WithHint("--tools must name every tool to serve")
	case len(s.tools) > 0:
		profile = "full"
	case profile == "":
		profile = q.cairn.Profile()
	}
	if !slices.Contains(settings.Profiles(), profile) {
		return nil, fault.Newf(fault.Invalid, "usage", "unknown profile %q", profile).WithHint("there are " + strings.Join(settings.Profiles(), ", "))
	}
	all, err := s.named(q.toolsets(profile))
	switch {
	case err != nil:
		return nil, err
	case len(s.tools) > 0:
		return s.single(all)
	case profile == "lean":
		return s.lean(all), nil
	}
	return all, nil
}

// named returns the toolsets that --toolsets names, and recall.
func (s surface) named(all []toolset) ([]toolset, error) {
	var names []string
	for _, t := range all {
		names = append(names, t.name)
	}
	for _, name := range s.toolsets {
		if !slices.Contains(names, name) {
			return nil, fault.Newf(fault.Invalid, "usage", "unknown toolset %q", name).WithHint("there are " + strings.Join(names, ", "))
		}
	}
	if len(s.toolsets) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(t toolset) bool { return t.name != recallToolset && !slices.Contains(s.toolsets, t.name) }), nil
}

// reachTools returns the toolset of find_tool and call_tool, which reach the tools of all.
func reachTools(all []toolset) toolset {
	groups := make([]mcp.Group, len(all))
	for i, t := range all {
		groups[i] = mcp.Group{Name: t.name, Tools: t.all}
	}
	return toolset{name: "others", tools: mcp.ReachTools(groups), lean: reachInstructions, instructions: reachInstructions}
}

// lean keeps the tools of the lean profile.
func (s surface) lean(all []toolset) []toolset {
	all = append(all, reachTools(all))
	for i := range all {
		all[i].tools, all[i].instructions = mcp.Lean(all[i].tools), all[i].lean
	}
	return all
}

// single keeps exactly the tools that --tools names. Sentences of the instructions that
// name other tools are removed, unless call_tool reaches these tools.
func (s surface) single(all []toolset) ([]toolset, error) {
	all = append(all, reachTools(all))
	var known []mcp.Tool
	for _, t := range all {
		known = append(known, t.tools...)
	}
	for _, name := range s.tools {
		if !slices.ContainsFunc(known, func(t mcp.Tool) bool { return t.Name == name }) {
			hint := "cairn tools lists all tools"
			if near := mcp.Nearest(known, name); len(near) > 0 {
				hint = "similar names are " + strings.Join(near, ", ") + "; " + hint
			}
			return nil, fault.Newf(fault.Invalid, "usage", "unknown tool %q", name).WithHint(hint)
		}
	}
	var chosen []toolset
	for _, t := range all {
		t.tools = slices.DeleteFunc(slices.Clone(t.tools), func(tool mcp.Tool) bool { return !slices.Contains(s.tools, tool.Name) })
		switch {
		case s.reachesAll() && len(t.tools) == 0:
			t.instructions, t.resources = "", nil
		case s.reachesAll():
		case len(t.tools) == 0:
			continue
		default:
			t.instructions = s.sentences(t.instructions, known)
			if t.all != nil {
				t.all = t.tools
			}
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// reachesAll reports whether the selected tools include call_tool, which can call every
// other tool.
func (s surface) reachesAll() bool { return slices.Contains(s.tools, "call_tool") }

// sentences returns the sentences of a text, without those that name a tool which is not
// served.
func (s surface) sentences(text string, known []mcp.Tool) string {
	var kept []string
	for _, sentence := range strings.SplitAfter(text, ". ") {
		if !slices.ContainsFunc(known, func(t mcp.Tool) bool {
			return strings.Contains(t.Name, "_") && strings.Contains(sentence, t.Name) && !slices.Contains(s.tools, t.Name)
		}) {
			kept = append(kept, sentence)
		}
	}
	return strings.TrimSpace(strings.Join(kept, ""))
}

// toolCost is the cost of a tool's definition in a model's context.
type toolCost struct {
	Name   string `json:"name"`
	About  string `json:"description"`
	Tokens int    `json:"tokens"`
}

// toolsetCost is the cost of a toolset.
type toolsetCost struct {
	Name   string     `json:"name"`
	Tokens int        `json:"tokens"`
	Tools  []toolCost `json:"tools"`
}

// surfaceCost is the cost of all toolsets, as defined and in each program.
type surfaceCost struct {
	Tokens   int           `json:"tokens"`
	Toolsets []toolsetCost `json:"toolsets"`
	Hosts    []hostCost    `json:"hosts"`
}

// hostCost is the cost of tools and instructions in each request of a program.
type hostCost struct {
	Name     string `json:"name"`
	Seen     string `json:"measured_version,omitempty"`
	Deferred bool   `json:"deferred"` // definitions are loaded on demand
	Tokens   int    `json:"tokens"`
}

func costOf(sets []toolset) (all surfaceCost, err error) {
	var tools []mcp.Tool
	for _, s := range sets {
		if len(s.tools) == 0 {
			continue
		}
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
	for _, h := range mcp.Hosts() {
		n, err := h.Cost(tools, instructionsFor(sets))
		if err != nil {
			return all, err
		}
		all.Hosts = append(all.Hosts, hostCost{h.Name, h.Version, h.Deferred, n})
	}
	all.Tokens, err = mcp.Tokens(tools)
	return all, err
}

func toolsCommand(p *command.Process) *cobra.Command {
	var chosen surface
	var asJSON, tokens bool
	cmd := &cobra.Command{
		Use:   "tools",
		Short: "List the MCP tools of serve",
		Long: `tools lists the tools that serve offers with the same --toolsets, --tools and --profile.
With --tokens it shows the size of each definition in tokens: a quarter of its bytes,
rounded up. Below that it shows how much all definitions and the server's instructions
add to each request to a model. Some programs load definitions on demand and send little
more than names. The others send every definition each time, in their own format.`,
		Example: "  cairn tools --tokens\n  cairn tools --tokens --profile lean\n  cairn tools --tokens --tools recall,add_entry",
		Args:    command.NoArgs,
		RunE: p.WithCairn(store.Command, func(_ *cobra.Command, c *cairn.Cairn, _ []string) error {
			sets, err := chosen.sets(toolHandlers{cairn: c})
			if err != nil {
				return err
			}
			cost, err := costOf(sets)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, cost)
			}
			return printTools(p, cost, tokens)
		}),
	}
	chosen.flags(cmd)
	cmd.Flags().BoolVar(&tokens, "tokens", false, "print the tokens per tool, per toolset and in total")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, always with tokens")
	return cmd
}

func printTools(p *command.Process, cost surfaceCost, tokens bool) error {
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
	if !tokens {
		return w.Flush()
	}
	fmt.Fprintf(w, "all\t\t%d\n", cost.Tokens)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w, "\nin each request of\t\t")
	for _, h := range cost.Hosts {
		how := "every definition"
		if h.Deferred {
			how = "on demand"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", h.Name, h.Tokens, how)
	}
	return w.Flush()
}
