package model

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// object is a JSON object.
type object = map[string]any

// event is one server-sent event.
type event struct {
	name string // "" if it has no name
	data any    // a string is sent unchanged
}

// send responds to a request in its protocol. It streams if the request asks for that.
func send(w http.ResponseWriter, r Request) {
	streaming := r.Body["stream"] == true
	switch r.Protocol {
	case "anthropic":
		whole, events := anthropic(r)
		sendEither(w, streaming, whole, events)
	case "responses":
		whole, events := responses(r)
		sendEither(w, streaming, whole, events)
	case "chat":
		whole, events := chat(r)
		sendEither(w, streaming, whole, events)
	case "gemini":
		whole := gemini(r)
		sendEither(w, strings.HasSuffix(r.Path, ":streamGenerateContent"), whole, []event{{data: whole}})
	}
}

func sendEither(w http.ResponseWriter, streaming bool, whole object, events []event) {
	if !streaming {
		sendJSON(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	for _, e := range events {
		data, isText := e.data.(string)
		if !isText {
			data = quoted(e.data)
		}
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

func sendJSON(w http.ResponseWriter, v object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // fails only if the program has closed the connection
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:16]) }

// anthropic returns a response of the Messages API, complete and as events.
func anthropic(r Request) (object, []event) {
	blocks := []object{}
	if r.Response.Text != "" {
		blocks = append(blocks, object{"type": "text", "text": r.Response.Text})
	}
	stop := "end_turn"
	for _, c := range r.Response.Calls {
		stop = "tool_use"
		blocks = append(blocks, object{"type": "tool_use", "id": newID("toolu_"), "name": c.Name, "input": c.Args})
	}
	message := func(content []object, reason any) object {
		return object{
			"id": newID("msg_"), "type": "message", "role": "assistant", "model": r.Body["model"], "content": content,
			"stop_reason": reason, "stop_sequence": nil,
			"usage": object{"input_tokens": r.Response.Tokens, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
		}
	}
	events := []event{{"message_start", object{"type": "message_start", "message": message([]object{}, nil)}}}
	for i, block := range blocks {
		start := object{"type": "text", "text": ""}
		delta := object{"type": "text_delta", "text": block["text"]}
		if block["type"] == "tool_use" {
			start = object{"type": "tool_use", "id": block["id"], "name": block["name"], "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": quoted(block["input"])}
		}
		events = append(events,
			event{"content_block_start", object{"type": "content_block_start", "index": i, "content_block": start}},
			event{"content_block_delta", object{"type": "content_block_delta", "index": i, "delta": delta}},
			event{"content_block_stop", object{"type": "content_block_stop", "index": i}})
	}
	events = append(events,
		event{"message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": 20}}},
		event{"message_stop", object{"type": "message_stop"}})
	return message(blocks, stop), events
}

// responses returns a response of OpenAI's Responses API, complete and as events.
func responses(r Request) (object, []event) {
	items := []object{}
	if r.Response.Text != "" {
		items = append(items, object{
			"type": "message", "id": newID("msg_"), "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": r.Response.Text, "annotations": []any{}}},
		})
	}
	for _, c := range r.Response.Calls {
		items = append(items, responsesCall(c))
	}
	id := newID("resp_")
	response := func(status string, output []object) object {
		return object{
			"id": id, "object": "response", "status": status, "model": r.Body["model"], "output": output,
			"usage": object{
				"input_tokens": r.Response.Tokens, "input_tokens_details": object{"cached_tokens": 0},
				"output_tokens": 20, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": r.Response.Tokens + 20,
			},
		}
	}
	events := []event{{"response.created", object{"type": "response.created", "response": response("in_progress", []object{})}}}
	for i, item := range items {
		for _, name := range []string{"response.output_item.added", "response.output_item.done"} {
			events = append(events, event{name, object{"type": name, "output_index": i, "item": item}})
		}
	}
	whole := response("completed", items)
	return whole, append(events, event{"response.completed", object{"type": "response.completed", "response": whole}})
}

func responsesCall(c Call) object {
	item := object{"type": "function_call", "id": newID("fc_"), "call_id": newID("call_"), "name": c.Name, "status": "completed"}
	if c.Input != "" {
		item["type"], item["input"] = "custom_tool_call", c.Input
	} else {
		item["arguments"] = c.arguments()
	}
	if c.Namespace != "" {
		item["namespace"] = c.Namespace
	}
	return item
}

// chat returns a response of OpenAI's chat completions API, complete and as events.
func chat(r Request) (object, []event) {
	message := object{"role": "assistant", "content": r.Response.Text}
	reason, calls := "stop", []object{}
	for i, c := range r.Response.Calls {
		reason = "tool_calls"
		calls = append(calls, object{"index": i, "id": newID("call_"), "type": "function", "function": object{"name": c.Name, "arguments": c.arguments()}})
	}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	usage := object{"prompt_tokens": r.Response.Tokens, "completion_tokens": 20, "total_tokens": r.Response.Tokens + 20}
	id, now := newID("chatcmpl-"), time.Now().Unix()
	chunk := func(delta object, reason, usage any) object {
		return object{
			"id": id, "object": "chat.completion.chunk", "created": now, "model": r.Body["model"], "usage": usage,
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": reason}},
		}
	}
	whole := object{
		"id": id, "object": "chat.completion", "created": now, "model": r.Body["model"], "usage": usage,
		"choices": []object{{"index": 0, "message": message, "finish_reason": reason}},
	}
	return whole, []event{{data: chunk(message, nil, nil)}, {data: chunk(object{}, reason, usage)}, {data: "[DONE]"}}
}

// gemini returns a response of the generateContent API.
func gemini(r Request) object {
	parts := []object{}
	if r.Response.Text != "" {
		parts = append(parts, object{"text": r.Response.Text})
	}
	for _, c := range r.Response.Calls {
		parts = append(parts, object{"functionCall": object{"id": newID("call-"), "name": c.Name, "args": c.Args}})
	}
	config, _ := r.Body["generationConfig"].(map[string]any)
	if config["responseMimeType"] == "application/json" && len(r.Response.Calls) == 0 {
		// Gemini CLI's model router asks which model to use.
		parts = []object{{"text": `{"reasoning":"simple","model_choice":"flash","complexity_reasoning":"simple","complexity_score":10}`}}
	}
	return object{
		"candidates":    []object{{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": parts}}},
		"usageMetadata": object{"promptTokenCount": r.Response.Tokens, "candidatesTokenCount": 20, "totalTokenCount": r.Response.Tokens + 20},
		"modelVersion":  "scripted",
	}
}
