package mail

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"cairn/internal/store"
)

// Suggestion is an existing name that is similar to one that was not found (mail §2.1).
type Suggestion struct {
	Name  string  `json:"name"`
	Score float64 `json:"score"` // 1 − edit distance ÷ longer length, ignoring case
}

const (
	MaxSuggestions = 5
	minScore       = 0.4
	maxCompared    = 256 // characters of a name
)

// BestSuggestions returns the best suggestions, best first, at most MaxSuggestions.
func BestSuggestions(all []Suggestion) []Suggestion {
	all = slices.DeleteFunc(all, func(s Suggestion) bool { return s.Score < minScore })
	slices.SortFunc(all, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), MaxSuggestions)]
}

// likeness returns the similarity of two names, from 0 to 1.
func likeness(a, b string) float64 {
	x, y := []rune(strings.ToLower(Truncate(a, maxCompared))), []rune(strings.ToLower(Truncate(b, maxCompared)))
	longer := max(len(x), len(y))
	if longer == 0 {
		return 1
	}
	return 1 - float64(editDistance(x, y))/float64(longer)
}

// editDistance returns the number of insertions, deletions and replacements that turn one text
// into the other.
func editDistance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			next := diagonal
			if x != y {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// SimilarAgents returns the names of the project's agents that are similar to a name, without
// retired agents; never nil.
func (s *CallTx) SimilarAgents(ctx context.Context, name string) ([]Suggestion, error) {
	near := []Suggestion{}
	err := eachName(ctx, s.Tx, s.Project.ID, func(other string, retired bool) {
		if !retired {
			near = append(near, Suggestion{Name: other, Score: likeness(name, other)})
		}
	})
	return BestSuggestions(near), err
}

// AgentNotFound returns the error for the name of an agent that does not exist.
func (s *CallTx) AgentNotFound(ctx context.Context, name string) error {
	near, err := s.SimilarAgents(ctx, name)
	if err != nil {
		return err
	}
	p := NotFound("agent", Clip(name, MaxShown)).With("project", s.Project.HumanKey).With("suggestions", near)
	register := name
	if mistake := MistakeIn(name); mistake != "" {
		p, register = p.With("mistake", mistake), ""
	}
	return p.Suggest(ListCall(s.ProjectKey), RegisterCall(s.ProjectKey, register, "", "")).
		Hint("list_agents shows who is registered in the project; register_agent adds you")
}

func ListCall(projectKey string) Call {
	return Call{Tool: "list_agents", Arguments: map[string]any{"project_key": projectKey}}
}

// RegisterCall returns a call that registers an agent; name "" for a generated name.
func RegisterCall(projectKey, name, program, model string) Call {
	Default(&program, "unknown")
	Default(&model, "unknown")
	arguments := map[string]any{"project_key": projectKey, "program": program, "model": model}
	if name != "" {
		arguments["name"] = name
	}
	return Call{Tool: "register_agent", Arguments: arguments}
}

const selectNames = `SELECT name, retired_ts IS NOT NULL FROM mail_agents WHERE project_id = ? ORDER BY name`

// eachName calls fn with every agent name of a project, including retired agents.
func eachName(ctx context.Context, tx *store.Tx, projectID int64, fn func(name string, retired bool)) error {
	return tx.Each(ctx, func(rows *sql.Rows) error {
		var name string
		var retired bool
		err := rows.Scan(&name, &retired)
		fn(name, retired)
		return err
	}, selectNames, projectID)
}
