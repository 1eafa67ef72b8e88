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
	tools        []mcp.Tool     // as they are listed
	all          []mcp.Tool     // as they are, also those that no list shows; the JSON mirror has these
	instructions string         // how to use them together
	lean         string         // the same for the lean profile
	project      []string       // arguments that name a call's project, the likeliest first; see httpapi.Toolset
	resources    []mcp.Resource // besides the context
}

func (q questions) toolsets(profile string) []toolset {
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

// recallToolset is the toolset of the tool recall, which every surface has.
const recallToolset = "recall"

// surface is which tools a server offers.
type surface struct {
	toolsets []string // by name; none for all
	tools    []string // exactly these; none for those of the profile
	profile  string   // one of cairn.Profiles; "" for that of the settings
}

// flags adds the flags that choose a surface.
func (s *surface) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&s.toolsets, "toolsets", nil, "only these tools and recall, by toolset: observations,memories,records,mail (default all)")
	cmd.Flags().StringSliceVar(&s.tools, "tools", nil, "exactly these tools, by name; find_tool and call_tool reach the others")
	cmd.Flags().StringVar(&s.profile, "profile", "", "full; core, messaging or minimal: less of mail; lean: the few tools that an agent\nneeds every day, and find_tool and call_tool for the others, for programs that\nsend all definitions with each request (default mcp.profile of the settings, else full)")
}

// sets are the toolsets of q that the surface shows.
func (s surface) sets(q questions) ([]toolset, error) {
	profile := s.profile
	switch {
	case len(s.tools) > 0 && profile != "":
		return nil, fault.New(fault.Invalid, "usage", "--tools and --profile exclude each other").WithHint("--tools names every tool that is to be served")
	case len(s.tools) > 0:
		profile = "full"
	case profile == "":
		profile = q.cairn.Profile()
	}
	if !slices.Contains(cairn.Profiles(), profile) {
		return nil, fault.Newf(fault.Invalid, "usage", "there is no profile %q", profile).WithHint("there are " + strings.Join(cairn.Profiles(), ", "))
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

// named picks the toolsets that were asked for by name, and recall.
func (s surface) named(all []toolset) ([]toolset, error) {
	var names []string
	for _, t := range all {
		names = append(names, t.name)
	}
	for _, name := range s.toolsets {
		if !slices.Contains(names, name) {
			return nil, fault.Newf(fault.Invalid, "usage", "there is no toolset %q", name).WithHint("there are " + strings.Join(names, ", "))
		}
	}
	if len(s.toolsets) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(all, func(t toolset) bool { return t.name != recallToolset && !slices.Contains(s.toolsets, t.name) }), nil
}

// reaching is the toolset of the two tools through which those of all are reached.
func reaching(all []toolset) toolset {
	groups := make([]mcp.Group, len(all))
	for i, t := range all {
		groups[i] = mcp.Group{Name: t.name, Tools: t.all}
	}
	return toolset{name: "others", tools: mcp.Reaching(groups), lean: reachInstructions, instructions: reachInstructions}
}

// lean lists of all the tools of the lean profile.
func (s surface) lean(all []toolset) []toolset {
	all = append(all, reaching(all))
	for i := range all {
		all[i].tools, all[i].instructions = mcp.Lean(all[i].tools), all[i].lean
	}
	return all
}

// single lists of all exactly the tools that were asked for. Instructions keep the
// sentences that name none of the others, unless call_tool reaches these.
func (s surface) single(all []toolset) ([]toolset, error) {
	all = append(all, reaching(all))
	var known []mcp.Tool
	for _, t := range all {
		known = append(known, t.tools...)
	}
	for _, name := range s.tools {
		if !slices.ContainsFunc(known, func(t mcp.Tool) bool { return t.Name == name }) {
			hint := "cairn tools lists them"
			if near := mcp.Nearest(known, name); len(near) > 0 {
				hint = "the nearest are " + strings.Join(near, ", ") + "; " + hint
			}
			return nil, fault.Newf(fault.Invalid, "usage", "there is no tool %q", name).WithHint(hint)
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
			t.instructions = s.told(t.instructions, known)
			if t.all != nil {
				t.all = t.tools
			}
		}
		chosen = append(chosen, t)
	}
	return chosen, nil
}

// reachesAll reports whether call_tool is among the single tools, through which every
// other is called.
func (s surface) reachesAll() bool { return slices.Contains(s.tools, "call_tool") }

// told are the sentences of a text that name no tool which is not served.
func (s surface) told(text string, known []mcp.Tool) string {
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

// surfaceCost is what all toolsets cost, as they are and in each program.
type surfaceCost struct {
	Tokens   int           `json:"tokens"`
	Toolsets []toolsetCost `json:"toolsets"`
	Hosts    []hostCost    `json:"hosts"`
}

// hostCost is what tools and instructions cost in each request of a program.
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
		all.Hosts = append(all.Hosts, hostCost{h.Name, h.Seen, h.Deferred, n})
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
		Long: `tools lists what serve offers with the same --toolsets, --tools and --profile. With
--tokens it shows the size of each definition in tokens: a quarter of its bytes, rounded
up. Below that it shows what all of them and the server's instructions add to each
request that a program sends to its model. Some programs load definitions on demand and
send little more than names; the others send every definition each time, in their own
form.`,
		Example: "  cairn tools --tokens\n  cairn tools --tokens --profile lean\n  cairn tools --tokens --tools recall,add_entry",
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
