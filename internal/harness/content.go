package harness

import "cairn/internal/harness/lazyjson"

// ContentText returns the text of a content: a string, a part, or several parts, which are joined
// without a separator. It omits thoughts.
func ContentText(content lazyjson.Value) string {
	switch content.Kind() {
	case '"':
		return content.Text()
	case '{':
		return PartText(content)
	}
	var all lazyjson.Paragraphs
	for part := range content.Elements() {
		if part.Kind() == '"' {
			all.Join(part.Text())
		} else {
			all.Join(PartText(part))
		}
	}
	return all.Text()
}

// PartText returns the text of one part of a content, "" for a thought.
func PartText(part lazyjson.Value) string {
	f := part.Pick("text", "functionResponse", "thought")
	if f[2].IsTrue() {
		return ""
	}
	if f[1] == nil {
		return f[0].Text()
	}
	r := f[1].Get("response").Pick("output", "error", "content")
	return lazyjson.FirstNonBlank(r[0].Text(), r[1].Text(), r[2].Plain())
}

// ToolResults returns the blocks of a content that are results of tools.
func ToolResults(content lazyjson.Value) (results []lazyjson.Value) {
	for block := range content.Elements() {
		if string(block.Get("type")) == `"tool_result"` {
			results = append(results, block)
		}
	}
	return results
}

// MessageText returns the text of a message: a string, or its text blocks joined by newlines.
func MessageText(content lazyjson.Value) string {
	if content.Kind() == '"' {
		return content.Text()
	}
	var said lazyjson.Paragraphs
	for block := range content.Elements() {
		f := block.Pick("type", "text")
		if string(f[0]) == `"text"` {
			said.Add(f[1].Text())
		}
	}
	return said.Text()
}
