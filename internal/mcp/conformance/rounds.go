//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addRoundTools adds the tools that ask by answering with what they need, as
// revision 2026-07-28 prescribes: the client repeats the call with the answers.
func addRoundTools(s *sdk.Server) {
	add := func(name string, h sdk.ToolHandler) {
		addTool(s, "test_input_required_result_"+name, "Asks for input by its result.", h)
	}
	add("elicitation", askName)
	add("sampling", askModel)
	add("list_roots", askRoots)
	add("multiple_inputs", askThree)
	add("request_state", askWithState)
	add("tampered_state", askWithState)
	add("multi_round", askTwice)
	add("capabilities", askWhatClientCan)
}

const (
	nameSchema    = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colorSchema   = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	confirmSchema = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
)

func form(message, schema string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)}
}

func needs(state string, inputs sdk.InputRequestMap) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{InputRequests: inputs, RequestState: state}, nil
}

// filled returns a field of an accepted form, "" when it is not there.
func filled(answers sdk.InputResponseMap, key, field string) string {
	form, ok := answers[key].(*sdk.ElicitResult)
	if !ok || form.Action != "accept" || form.Content[field] == nil {
		return ""
	}
	return fmt.Sprint(form.Content[field])
}

// said returns what the client's model answered.
func said(answers sdk.InputResponseMap, key string) (string, bool) {
	answer, ok := answers[key].(*sdk.CreateMessageWithToolsResult)
	if !ok {
		return "", false
	}
	for _, c := range answer.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			return t.Text, true
		}
	}
	return "", false
}

func askName(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if name := filled(r.Params.InputResponses, "user_name", "name"); name != "" {
		return text("Hello, " + name + "!"), nil
	}
	return needs("", sdk.InputRequestMap{"user_name": form("What is your name?", nameSchema)})
}

func askModel(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if answer, ok := said(r.Params.InputResponses, "capital_question"); ok {
		return text("The model said: " + answer), nil
	}
	return needs("", sdk.InputRequestMap{"capital_question": question("What is the capital of France?")})
}

func askRoots(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if roots, ok := r.Params.InputResponses["client_roots"].(*sdk.ListRootsResult); ok {
		return text(fmt.Sprintf("The client has %d roots.", len(roots.Roots))), nil
	}
	return needs("", sdk.InputRequestMap{"client_roots": &sdk.ListRootsParams{}})
}

func askThree(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	answers := r.Params.InputResponses
	name := filled(answers, "user_name", "name")
	greeting, greeted := said(answers, "greeting")
	roots, listed := answers["client_roots"].(*sdk.ListRootsResult)
	if name != "" && greeted && listed {
		return text(fmt.Sprintf("%s %s, with %d roots", greeting, name, len(roots.Roots))), nil
	}
	return needs("three", sdk.InputRequestMap{
		"user_name":    form("What is your name?", nameSchema),
		"greeting":     question("Write a greeting"),
		"client_roots": &sdk.ListRootsParams{},
	})
}

// askWithState takes only the state that it gave out itself.
func askWithState(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	const state = "confirming"
	if given := r.Params.RequestState; given != "" && given != state {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is not one of ours"}
	}
	if r.Params.RequestState == state && filled(r.Params.InputResponses, "confirm", "ok") != "" {
		return text("state-ok"), nil
	}
	return needs(state, sdk.InputRequestMap{"confirm": form("Please confirm", confirmSchema)})
}

// askTwice keeps the first answer in the state while it asks for the second.
func askTwice(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	answers := r.Params.InputResponses
	name, second := strings.CutPrefix(r.Params.RequestState, "name=")
	switch {
	case second:
		return text(name + " likes " + filled(answers, "step2", "color")), nil
	case r.Params.RequestState == "first":
		return needs("name="+filled(answers, "step1", "name"),
			sdk.InputRequestMap{"step2": form("Step 2: Which colour?", colorSchema)})
	}
	return needs("first", sdk.InputRequestMap{"step1": form("Step 1: What is your name?", nameSchema)})
}

// askWhatClientCan asks only for what the client said it can give.
func askWhatClientCan(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	if len(r.Params.InputResponses) > 0 {
		return text("answered"), nil
	}
	inputs := sdk.InputRequestMap{}
	if c := r.ClientCapabilities(); c != nil {
		if c.Elicitation != nil {
			inputs["user_name"] = form("What is your name?", nameSchema)
		}
		if c.Sampling != nil {
			inputs["greeting"] = question("Write a greeting")
		}
		if c.RootsV2 != nil {
			inputs["client_roots"] = &sdk.ListRootsParams{}
		}
	}
	if len(inputs) == 0 {
		return text("the client can be asked nothing"), nil
	}
	return needs("", inputs)
}
