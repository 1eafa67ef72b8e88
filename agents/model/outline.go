package model

// Outline returns a request without the program's own content. It keeps the tools with their
// names and parameters, and the fields that decide how the response is sent.
func (r Request) Outline() Request {
	body := map[string]any{}
	for _, name := range []string{"stream", "model", "tools"} {
		if value, ok := r.Body[name]; ok {
			body[name] = withoutProse(value)
		}
	}
	var input []any
	for _, item := range objects(r.Body["input"]) {
		if item["type"] == "additional_tools" {
			input = append(input, withoutProse(item))
		}
	}
	if input != nil {
		body["input"] = input
	}
	return Request{Protocol: r.Protocol, Method: r.Method, Path: r.Path, Main: r.Main, Body: body}
}

// withoutProse removes descriptions and other long values from tool definitions.
func withoutProse(v any) any {
	switch v := v.(type) {
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = withoutProse(v[i])
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, value := range v {
			if s, isText := value.(string); isText && (name == "description" || name == "definition" || len(s) > 100) {
				continue
			}
			object[name] = withoutProse(value)
		}
		return object
	}
	return v
}
