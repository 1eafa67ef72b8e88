package main

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// resultSchemas are the result schemas that a server lists, by tool. A lean server lists
// none.
type resultSchemas struct {
	once sync.Once
	all  map[string]*jsonschema.Resolved
	err  error
}

// checked reports a tool result that does not match its schema, as official clients do. It
// also reports fields that the schema does not list.
func (c *client) checked(tool string, r *sdk.CallToolResult) {
	c.t.Helper()
	c.schemas.once.Do(func() { c.schemas.all, c.schemas.err = c.listSchemas() })
	if c.schemas.err != nil {
		c.t.Errorf("the schemas of results: %v", c.schemas.err)
		return
	}
	schema := c.schemas.all[tool]
	if r.IsError || schema == nil {
		return
	}
	if err := schema.Validate(r.StructuredContent); err != nil {
		c.t.Errorf("%s: the result is not as its schema says: %v", tool, err)
	}
}

func (c *client) listSchemas() (map[string]*jsonschema.Resolved, error) {
	all := map[string]*jsonschema.Resolved{}
	for tool, err := range c.Tools(c.t.Context(), nil) {
		if err != nil {
			return nil, err
		}
		if tool.OutputSchema == nil {
			continue
		}
		closeObjects(tool.OutputSchema)
		data, err := json.Marshal(tool.OutputSchema)
		if err != nil {
			return nil, err
		}
		var schema jsonschema.Schema
		if err := json.Unmarshal(data, &schema); err != nil {
			return nil, fmt.Errorf("%s: %w", tool.Name, err)
		}
		if all[tool.Name], err = schema.Resolve(nil); err != nil {
			return nil, fmt.Errorf("%s: %w", tool.Name, err)
		}
	}
	return all, nil
}

// closeObjects forbids objects of a schema to have unlisted fields.
func closeObjects(schema any) {
	switch s := schema.(type) {
	case []any:
		for _, v := range s {
			closeObjects(v)
		}
	case map[string]any:
		if _, ok := s["properties"].(map[string]any); ok {
			s["additionalProperties"] = false
		}
		for _, v := range s {
			closeObjects(v)
		}
	}
}
