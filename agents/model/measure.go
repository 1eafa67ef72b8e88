package model

import (
	"encoding/json"
	"strings"
)

// ToolCost returns the number of cairn's tools in a request and the size of their definitions
// in bytes.
func (r Request) ToolCost() (count, bytes int) {
	for _, t := range offeredTools(r.Body) {
		if !t.isCairn() {
			continue
		}
		data, err := json.Marshal(t.definition)
		if err != nil {
			continue // it was parsed from JSON
		}
		count++
		bytes += len(data)
	}
	return count, bytes
}

// Size returns the size of the request's body in bytes.
func (r Request) Size() int { return len(quoted(r.Body)) }

// Texts returns every text of the request outside its tool definitions.
func (r Request) Texts() []string {
	var list []string
	for name, value := range r.Body {
		if name != "tools" {
			collect(value, &list)
		}
	}
	return list
}

func collect(v any, list *[]string) {
	switch v := v.(type) {
	case string:
		*list = append(*list, v)
	case []any:
		for _, item := range v {
			collect(item, list)
		}
	case map[string]any:
		if v["type"] == "additional_tools" {
			return
		}
		for _, item := range v {
			collect(item, list)
		}
	}
}

// Find returns the texts of the request that contain all given parts.
func (r Request) Find(parts ...string) []string {
	var found []string
	for _, t := range r.Texts() {
		if containsAll(t, parts) {
			found = append(found, t)
		}
	}
	return found
}

func containsAll(t string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(t, part) {
			return false
		}
	}
	return true
}
