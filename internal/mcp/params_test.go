package mcp

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"cairn"
	"cairn/internal/fault"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/memory/prompts"
	"cairn/internal/record"
	"cairn/internal/record/lookup"
)

// everyTool returns all tools of the product, without a store.
func everyTool() []Tool {
	return slices.Concat(
		[]Tool{RecallTool(nil), WhyTool(nil, "")}, ObservationTools(Observations{}), RecordTools(cairn.Records{}, ""),
		MailTools(cairn.Mail{}, MailOptions{}), MemoryTools(cairn.Memories{}, ""), ReachTools(nil),
	)
}

// valid returns a valid value of p that differs from the value of an omitted argument.
func valid(p toolargs.Param) any {
	switch p.Kind {
	case toolargs.Integer:
		return 7
	case toolargs.Boolean:
		return p.Default != true
	case toolargs.Integers:
		return []int{7}
	case toolargs.Strings, toolargs.Names:
		return []string{"some"}
	case toolargs.Object:
		return map[string]string{"a": "b"}
	}
	if p.Enum != nil {
		return p.Enum[len(p.Enum)-1]
	}
	return "some"
}

// sending returns the required arguments of t and one more.
func (t Tool) sending(test *testing.T, name string, value any) json.RawMessage {
	test.Helper()
	arguments := map[string]any{}
	for _, p := range t.Params {
		if p.Required {
			arguments[p.Name] = valid(p)
		}
	}
	arguments[name] = value
	raw, err := json.Marshal(arguments)
	if err != nil {
		test.Fatal(err)
	}
	return raw
}

// TestEachArgumentOfASchemaReachesItsField checks that a tool's schema has the arguments that
// its struct declares. An argument sent under any of its names must be stored in its field.
func TestEachArgumentOfASchemaReachesItsField(t *testing.T) {
	t.Parallel()
	fields := 0
	for _, tool := range everyTool() {
		listed := map[string]bool{}
		for _, p := range tool.Params {
			if p.Kind == toolargs.Anything {
				continue
			}
			listed[p.Name] = !p.Unlisted
			for _, name := range append([]string{p.Name}, p.Aliases...) {
				sent := tool.sending(t, p.Name, valid(p))
				if name != p.Name {
					var arguments map[string]json.RawMessage
					if err := json.Unmarshal(sent, &arguments); err != nil {
						t.Fatal(err)
					}
					arguments[name] = arguments[p.Name]
					delete(arguments, p.Name)
					sent, _ = json.Marshal(arguments)
				}
				c, in, err := tool.decode(sent, toolargs.Scope{Name: "elsewhere"})
				if err != nil || len(c.ignored) > 0 {
					t.Errorf("%s: %s: %v, ignored %q", tool.Name, sent, err, c.ignored)
					continue
				}
				for _, target := range p.Targets {
					fields++
					field := reflect.ValueOf([]any{in, c.common}[target.Path[0]]).Elem().FieldByIndex(target.Path[1:])
					isState := target.Form == toolargs.IfNull || target.Form == toolargs.IfOmitted
					if field.IsZero() != isState || p.Kind == toolargs.Project && !isState && field.Interface() != any(toolargs.Scope{Name: "some"}) {
						t.Errorf("%s: %s: the field of %s is %v", tool.Name, sent, name, field)
					}
				}
			}
		}
		maps.DeleteFunc(listed, func(_ string, is bool) bool { return !is })
		var schema struct{ Properties map[string]any }
		data, err := tool.Schema()
		if err == nil {
			err = json.Unmarshal(data, &schema)
		}
		if err != nil || !slices.Equal(slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(listed))) {
			t.Errorf("%s: %s, %v", tool.Name, data, err)
		}
	}
	if fields < 300 {
		t.Errorf("only %d fields", fields)
	}
}

// TestMistakesOfACallerAreNamed sends an unknown argument, and one of another type than in the
// schema.
func TestMistakesOfACallerAreNamed(t *testing.T) {
	t.Parallel()
	for _, tool := range everyTool() {
		c, _, err := tool.decode(tool.sending(t, "bogus", 1), toolargs.Scope{})
		if !tool.strict && (err != nil || !slices.Equal(c.ignoredNames(), []string{"bogus"})) || tool.strict && fieldOf(err) != "bogus" {
			t.Errorf("%s does not name bogus: %v, ignored %q", tool.Name, err, c.ignored)
		}
		for _, p := range tool.Params {
			mistyped := any(7)
			if p.Kind == toolargs.Integer {
				mistyped = []int{7}
			}
			if _, _, err := tool.decode(tool.sending(t, p.Name, mistyped), toolargs.Scope{}); p.Kind != toolargs.Anything && fieldOf(err) != p.Name {
				t.Errorf("%s does not name %s: %v", tool.Name, p.Name, err)
			}
		}
	}
}

// fieldOf returns the argument that an error names.
func fieldOf(err error) string {
	if err == nil {
		return ""
	}
	field, _ := fault.As(err).Details["field"].(string)
	return field
}

// TestEnumsAreThoseOfTheParts compares the enums in tags, which are copies, with those of the
// parts.
func TestEnumsAreThoseOfTheParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tool, name string
		want       []string
	}{
		{"create_record", "state", stateNames()},
		{"list_records", "states", stateNames()},
		{"search_records", "states", stateNames()},
		{"transition", "to_state", stateNames()},
		{"get_recent_activity", "types", lookup.ActivityTypes()},
		{"get_default_prompts", "memory_type", prompts.Kinds()},
	} {
		tools := everyTool()
		tool := tools[slices.IndexFunc(tools, func(t Tool) bool { return t.Name == c.tool })]
		p := tool.Params[slices.IndexFunc(tool.Params, func(p toolargs.Param) bool { return p.Name == c.name })]
		if !slices.Equal(p.Enum, c.want) {
			t.Errorf("%s: %s: %q, want %q", c.tool, c.name, p.Enum, c.want)
		}
	}
}

// TestAMistakeInATagIsADefect checks that creating a tool with an invalid tag panics.
func TestAMistakeInATagIsADefect(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]reflect.Type{
		"unknown option": reflect.TypeFor[struct {
			A string `arg:"a,requird"`
		}](),
		"number": reflect.TypeFor[struct {
			A int `arg:"a,min=x"`
		}](),
		"chosen": reflect.TypeFor[struct {
			record.Caller `arg:"projct_id"`
		}](),
		"type": reflect.TypeFor[struct {
			A float64 `arg:"a"`
		}](),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defer func() {
				if recover() == nil {
					t.Error("nothing happened")
				}
			}()
			toolargs.ParamsOf(of)
		})
	}
}
