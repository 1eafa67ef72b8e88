package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/words"
)

// The two lean tools that reach all others (amendments §B.3).
const (
	findTool = "find_tool"
	callTool = "call_tool"
)

// CodeUnknownTool is the code of the error for an unknown tool name.
const CodeUnknownTool = "unknown_tool"

// Group is a toolset: tools that belong together, with the toolset's name.
type Group struct {
	Name  string
	Tools []Tool
}

// ReachTools returns find_tool and call_tool for the tools of groups. A call through
// call_tool equals a call of the tool itself: arguments, result, errors, permissions, and
// the name in the metrics. A server with call_tool also accepts calls of these tools by
// their own names.
func ReachTools(groups []Group) []Tool {
	r := newReach(groups)
	find := NewTool(Tool{
		Name: findTool, ReadOnly: true, Lean: true, checksLevel: true,
		Description: "Find tools of cairn that are not listed here, with all their arguments: describe what you want to do, or name tools. An empty query lists all names.",
		Brief:       "Find tools that are not listed, with all their arguments: describe what you want to do.",
	}, func(_ context.Context, _ Call, in findArgs) (FoundTools, error) { return r.find(in.Query) })
	call := NewTool[callArgs, any](Tool{
		Name: callTool, Lean: true, checksLevel: true, reach: r,
		Description: "Call any tool of cairn by its name, listed here or not. The result is the tool's own.",
		Brief:       "Call any tool by its name.",
	}, nil)
	return []Tool{find, call}
}

type findArgs struct {
	Query string `arg:"query,required" about:"What you want to do, in a few words, or tool names."`
}

type callArgs struct {
	Name      string          `arg:"name,required" about:"The tool's name."`
	Arguments json.RawMessage `arg:"arguments,required" about:"Its arguments, as find_tool describes them."`
}

// FoundTools is the result of find_tool.
type FoundTools struct {
	Tools []FoundTool         `json:"tools"`           // best first
	Names map[string][]string `json:"names,omitempty"` // if no tool was found: all names, by toolset
	Hint  string              `json:"hint"`
}

// FoundTool is the definition of a tool.
type FoundTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// reach finds tools by name and by words.
type reach struct {
	groups []Group
	tools  []Tool

	index  sync.Once            // built by the first search for words
	weight []map[string]float64 // for each tool, the weight of each word
	tooled map[string]int       // number of tools per word
}

func newReach(groups []Group) *reach {
	r := &reach{groups: groups}
	for _, g := range groups {
		r.tools = append(r.tools, g.Tools...)
	}
	return r
}

// read builds the index of words.
func (r *reach) read() {
	r.tooled = map[string]int{}
	for _, g := range r.groups {
		for _, t := range g.Tools {
			weights := wordsOf(g.Name, t)
			r.weight = append(r.weight, weights)
			for word := range weights {
				r.tooled[word]++
			}
		}
	}
}

// wordsOf returns the weights of a tool's words, by their place: name, words, description.
func wordsOf(group string, t Tool) map[string]float64 {
	weights := map[string]float64{}
	read := func(text string, weight float64) {
		words.EachKey(text, func(key string) { weights[key] = max(weights[key], weight) })
	}
	read(strings.ReplaceAll(t.Name, "_", " "), 4)
	read(t.Words, 4)
	read(group, 2)
	read(t.Description, 2)
	for _, p := range t.Params {
		if !p.Unlisted {
			read(strings.ReplaceAll(p.Name, "_", " ")+" "+p.Description, 0.5)
		}
	}
	return weights
}

const (
	mostNamed  = 8   // maximum number of tools for a query that names them
	mostFound  = 3   // maximum number of tools for other queries
	leastShare = 0.4 // minimum score of a tool, relative to the best one
)

// find returns the tools that a query names, else the tools that match its words best,
// else the names of all tools.
func (r *reach) find(query string) (FoundTools, error) {
	found := r.named(query)
	if len(found) == 0 {
		found = r.ranked(query)
	}
	out := FoundTools{Tools: []FoundTool{}, Hint: `call one by call_tool(name, arguments)`}
	for _, t := range found {
		schema, err := t.Schema()
		if err != nil {
			return out, err
		}
		out.Tools = append(out.Tools, FoundTool{t.Name, t.Description, schema})
	}
	if len(found) == 0 {
		out.Names = map[string][]string{}
		for _, g := range r.groups {
			for _, t := range g.Tools {
				out.Names[g.Name] = append(out.Names[g.Name], t.Name)
			}
		}
		out.Hint = "these are all tools; call find_tool with some of these names to see their arguments"
	}
	return out, nil
}

// named returns the tools whose names are in a query. Names that are everyday words count
// only if the query consists of names.
func (r *reach) named(query string) (all []Tool) {
	names := strings.FieldsFunc(query, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
	only := !slices.ContainsFunc(names, func(name string) bool { _, ok := r.tool(name); return !ok })
	for _, name := range names {
		if t, ok := r.tool(name); ok && (only || strings.Contains(name, "_")) {
			all = append(all, t)
		}
	}
	return all[:min(len(all), mostNamed)]
}

// ranked returns the tools that match the words of a query, best first.
func (r *reach) ranked(query string) []Tool {
	r.index.Do(r.read)
	var keys, said []string
	words.EachKey(query, func(key string) {
		if keys = append(keys, key); !words.IsStopWord(key) {
			said = append(said, key)
		}
	})
	if len(said) == 0 {
		said = keys
	}
	scores, order := make([]float64, len(r.tools)), make([]int, len(r.tools))
	for i, weights := range r.weight {
		fitting := 0.0
		for _, key := range said {
			if fit := r.fit(key, weights); fit > 0 {
				fitting, scores[i] = fitting+1, scores[i]+fit
			}
		}
		order[i], scores[i] = i, scores[i]*fitting
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	var all []Tool
	for _, i := range order[:min(len(order), mostFound)] {
		if scores[i] > 0 && scores[i] >= leastShare*scores[order[0]] {
			all = append(all, r.tools[i])
		}
	}
	return all
}

// fit returns the score of a query's word for a tool. Rare words score higher. Words with
// only the same beginning score half.
func (r *reach) fit(key string, weights map[string]float64) float64 {
	const prefix = 4
	best := weights[key] * r.rarity(key)
	if len(key) >= prefix {
		for word, weight := range weights {
			if word != key && len(word) >= prefix && (strings.HasPrefix(word, key) || strings.HasPrefix(key, word)) {
				best = max(best, weight*r.rarity(word)/2)
			}
		}
	}
	return best
}

func (r *reach) rarity(word string) float64 {
	return math.Log(1 + float64(len(r.tools))/float64(max(r.tooled[word], 1)))
}

// tool returns the tool with a name or alias, in upper or lower case.
func (r *reach) tool(name string) (Tool, bool) {
	i := slices.IndexFunc(r.tools, func(t Tool) bool {
		return strings.EqualFold(t.Name, name) || slices.ContainsFunc(t.Aliases, func(alias string) bool { return strings.EqualFold(alias, name) })
	})
	if i < 0 {
		return Tool{}, false
	}
	return r.tools[i], true
}

// Nearest returns at most three tool names that are similar to a misspelt name, most
// similar first.
func Nearest(tools []Tool, name string) []string {
	const most = 3
	distance := map[string]int{}
	var names []string
	for _, t := range tools {
		limit := max(len(name), len(t.Name)) * 2 / 5
		d := words.Edits(strings.ToLower(name), t.Name, limit)
		if d > limit && len(name) >= most && (strings.Contains(t.Name, strings.ToLower(name)) || strings.Contains(strings.ToLower(name), t.Name)) {
			d = limit
		}
		if d <= limit {
			names, distance[t.Name] = append(names, t.Name), d
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(distance[a], distance[b]) })
	return names[:min(len(names), most)]
}

// target reads the arguments of call_tool and returns the tool to call with its
// arguments. Models also put the arguments next to the name, or into a text; both are
// accepted.
func (r *reach) target(raw json.RawMessage) (t Tool, arguments json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &fields) != nil {
		return t, nil, fault.Newf(fault.Invalid, toolargs.CodeInvalidArgument, "arguments must be an object, not %s", toolargs.TypeOf(raw))
	}
	name, ok := toolargs.Text(fields["name"])
	if !ok {
		return t, nil, toolargs.Param{Name: "name"}.Missing()
	}
	if t, ok = r.tool(strings.TrimSpace(name)); !ok {
		return t, nil, r.unknown(name)
	}
	arguments, given := fields["arguments"]
	delete(fields, "name")
	switch written, isText := toolargs.Text(arguments); {
	case !given && len(fields) > 0:
		arguments, err = toolargs.JSON(fields)
		return t, arguments, err
	case isText && strings.HasPrefix(strings.TrimSpace(written), "{") && json.Valid([]byte(written)):
		return t, json.RawMessage(written), nil
	case !given || bytes.Equal(bytes.TrimSpace(arguments), []byte("null")):
		return t, nil, nil
	}
	return t, arguments, nil
}

// unknown returns the error for an unknown tool name.
func (r *reach) unknown(name string) error {
	hint := "find_tool finds tools by what they do"
	near := Nearest(r.tools, name)
	if len(near) > 0 {
		hint = "similar names are " + strings.Join(near, ", ") + "; " + hint
	}
	e := fault.Newf(fault.NotFound, CodeUnknownTool, "unknown tool %.60q", name).WithHint(hint)
	e.Details = map[string]any{"suggestions": near}
	return e
}
