package mcp

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"cairn/internal/mail"
	"cairn/internal/mcp/toolargs"
	"cairn/internal/memory"
	"cairn/internal/record"
	"github.com/google/jsonschema-go/jsonschema"
)

// resultOf returns a [Tool.Result] of one type.
func resultOf[T any]() []reflect.Type { return []reflect.Type{reflect.TypeFor[T]()} }

// resultOfEither returns a [Tool.Result] of two types.
func resultOfEither[A, B any]() []reflect.Type { return append(resultOf[A](), resultOf[B]()...) }

// outputSchema returns the JSON Schema of the structured content of a tool that returns
// one of types. It always describes an object. It allows additional fields, so that
// clients with an old schema accept the results of a newer cairn.
func outputSchema(types []reflect.Type) (json.RawMessage, error) {
	var all *jsonschema.Schema
	for _, t := range types {
		s, err := resultSchema(t)
		if err != nil {
			return nil, err
		}
		all = either(all, s)
	}
	return appendSchema(nil, all)
}

// appendSchema appends a schema as JSON. It supports only the keywords that [resultSchema]
// and [either] use. The library's own encoder processes nested schemas repeatedly, which
// would add 15 ms to the start of a server.
func appendSchema(b []byte, s *jsonschema.Schema) (_ []byte, err error) {
	comma := "{"
	add := func(keyword string, value any) {
		var data []byte
		if err != nil {
			return
		}
		if data, err = toolargs.JSON(value); err == nil {
			b = fmt.Appendf(b, "%s%q:%s", comma, keyword, data)
			comma = ","
		}
	}
	open := func(keyword, bracket string) { b, comma = fmt.Appendf(b, "%s%q:%s", comma, keyword, bracket), "," }
	nested := func(inner *jsonschema.Schema) {
		if err == nil {
			b, err = appendSchema(b, inner)
		}
	}
	switch {
	case s.Type != "":
		add("type", s.Type)
	case s.Types != nil:
		add("type", s.Types)
	}
	if s.Description != "" {
		add("description", s.Description)
	}
	if s.Enum != nil {
		add("enum", s.Enum)
	}
	if s.Properties != nil {
		open("properties", "{")
		for i, name := range s.PropertyOrder {
			if i > 0 {
				b = append(b, ',')
			}
			b = fmt.Appendf(b, "%q:", name)
			nested(s.Properties[name])
		}
		b = append(b, '}')
	}
	if s.Required != nil {
		add("required", s.Required)
	}
	if s.Items != nil {
		open("items", "")
		nested(s.Items)
	}
	if s.AdditionalProperties != nil {
		open("additionalProperties", "")
		nested(s.AdditionalProperties)
	}
	if s.AnyOf != nil {
		open("anyOf", "[")
		for i, inner := range s.AnyOf {
			if i > 0 {
				b = append(b, ',')
			}
			nested(inner)
		}
		b = append(b, ']')
	}
	if comma == "{" {
		b = append(b, '{')
	}
	return append(b, '}'), err
}

// resultSchema returns the schema of the structured content for a result of type t.
func resultSchema(t reflect.Type) (*jsonschema.Schema, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem() // a result is never null
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: typeSchemas()})
	if err != nil {
		return nil, err
	}
	loosen(s)
	if s.Type == "object" {
		return s, nil
	}
	if t.Kind() == reflect.Slice {
		s.Type, s.Types = "array", nil // [resultJSON] writes a nil list as an empty one
	}
	return &jsonschema.Schema{
		Type: "object", Required: []string{"result"}, PropertyOrder: []string{"result", "hint"},
		Properties: map[string]*jsonschema.Schema{
			"result": s,
			"hint":   {Type: "string", Description: "For an empty list: what was tried, and what to try next."},
		},
	}, nil
}

// typeSchemas returns the schemas of types with their own JSON encoding.
func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	states := make([]any, 0, len(stateNames()))
	for _, name := range stateNames() {
		states = append(states, name)
	}
	moment := &jsonschema.Schema{Type: "string", Description: "RFC 3339"}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[mail.Time]():       {Types: []string{"string", "null"}, Description: "RFC 3339"},
		reflect.TypeFor[record.Time]():     moment,
		reflect.TypeFor[memory.Time]():     moment,
		reflect.TypeFor[record.State]():    {Type: "string", Enum: states},
	}
}

// loosen allows additional fields in objects. It also adds a description to schemas of
// any value, because some clients cannot read the schema true.
func loosen(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		if p.Type == "" && p.Types == nil && p.Description == "" {
			p.Description = "any JSON value"
		}
		loosen(p)
	}
	loosen(s.Items)
	if s.AdditionalProperties != nil {
		loosen(s.AdditionalProperties)
	}
}

// either returns a schema for values of one of two schemas. For objects it has the fields
// of both and requires the fields that both require.
func either(a, b *jsonschema.Schema) *jsonschema.Schema {
	switch {
	case a == nil:
		return b
	case reflect.DeepEqual(a, b):
		return a
	case a.Items != nil && b.Items != nil:
		all := *a
		all.Items = either(a.Items, b.Items)
		return &all
	case a.Properties == nil || b.Properties == nil:
		return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{a, b}}
	}
	all := *a
	all.Properties = make(map[string]*jsonschema.Schema, len(a.Properties))
	all.PropertyOrder = slices.Clone(a.PropertyOrder)
	all.Required = slices.DeleteFunc(slices.Clone(a.Required), func(name string) bool { return !slices.Contains(b.Required, name) })
	for name, p := range a.Properties {
		all.Properties[name] = p
	}
	for _, name := range b.PropertyOrder {
		if all.Properties[name] == nil {
			all.PropertyOrder = append(all.PropertyOrder, name)
		}
		all.Properties[name] = either(all.Properties[name], b.Properties[name])
	}
	return &all
}
