//go:build conformance

package conformance

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addAskingTools adds the tools that send the client a request, as revisions up
// to 2025-11-25 allow.
func addAskingTools(s *sdk.Server) {
	addToolWithSchema(s, "test_sampling", "Asks the client's model.",
		`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, sampling)
	addToolWithSchema(s, "test_elicitation", "Asks the user.",
		`{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`,
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			var in struct{ Message string }
			if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
				return nil, err
			}
			return elicit(ctx, r, in.Message, `{"type":"object","properties":{
				"username":{"type":"string","description":"User's response"},
				"email":{"type":"string","description":"User's email address"}},
				"required":["username","email"]}`)
		})
	addTool(s, "test_elicitation_sep1034_defaults", "Asks the user, with defaults.",
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return elicit(ctx, r, "Values with defaults", `{"type":"object","properties":{
				"name":{"type":"string","default":"John Doe"},
				"age":{"type":"integer","default":30},
				"score":{"type":"number","default":95.5},
				"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},
				"verified":{"type":"boolean","default":true}}}`)
		})
	addTool(s, "test_elicitation_sep1330_enums", "Asks the user to choose.",
		func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return elicit(ctx, r, "Choices", choiceSchema)
		})
}

// choiceSchema has the five ways to offer a choice.
const choiceSchema = `{"type":"object","properties":{
	"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
	"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},
		{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
	"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],
		"enumNames":["Option One","Option Two","Option Three"]},
	"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
	"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},
		{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`

func sampling(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var in struct{ Prompt string }
	if err := json.Unmarshal(r.Params.Arguments, &in); err != nil {
		return nil, err
	}
	//lint:ignore SA1019 the suite tests the deprecated feature
	answer, err := r.Session.CreateMessage(ctx, question(in.Prompt))
	if err != nil {
		return nil, err
	}
	said, ok := answer.Content.(*sdk.TextContent)
	if !ok {
		return nil, fmt.Errorf("the model answered with %T", answer.Content)
	}
	return text("LLM response: " + said.Text), nil
}

func question(prompt string) *sdk.CreateMessageParams {
	return &sdk.CreateMessageParams{
		MaxTokens: 100,
		Messages:  []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: prompt}}},
	}
}

func elicit(ctx context.Context, r *sdk.CallToolRequest, message, schema string) (*sdk.CallToolResult, error) {
	answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)})
	if err != nil {
		return nil, err
	}
	return text(fmt.Sprintf("User response: action=%s, content=%v", answer.Action, answer.Content)), nil
}
