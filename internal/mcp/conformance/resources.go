//go:build conformance

package conformance

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func addResources(s *sdk.Server) {
	addResource := func(uri, description, mimeType string, contents *sdk.ResourceContents) {
		s.AddResource(&sdk.Resource{
			URI: uri, Name: strings.TrimPrefix(uri, "test://"), Description: description, MIMEType: mimeType,
		}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			copied := *contents
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&copied}}, nil
		})
	}
	addResource("test://static-text", "A text.", "text/plain",
		&sdk.ResourceContents{Text: "This is the content of the static text resource."})
	addResource("test://static-binary", "An image.", "image/png", &sdk.ResourceContents{Blob: redDot()})
	addResource("test://watched-resource", "A text to subscribe to.", "text/plain",
		&sdk.ResourceContents{Text: "watched"})
	s.AddResourceTemplate(&sdk.ResourceTemplate{
		URITemplate: "test://template/{id}/data", Name: "template", Description: "Data by id.", MIMEType: "application/json",
	}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{
			Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id),
		}}}, nil
	})
}

func addPrompts(s *sdk.Server) {
	addPrompt(s, "test_simple_prompt", "A prompt.", "This is a simple prompt for testing.")
	s.AddPrompt(&sdk.Prompt{
		Name: "test_prompt_with_arguments", Description: "A prompt with two arguments.",
		Arguments: []*sdk.PromptArgument{
			{Name: "arg1", Description: "The first.", Required: true},
			{Name: "arg2", Description: "The second.", Required: true},
		},
	}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		a := r.Params.Arguments
		return userSays(&sdk.TextContent{
			Text: fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"]),
		}), nil
	})
	s.AddPrompt(&sdk.Prompt{
		Name: "test_prompt_with_embedded_resource", Description: "A prompt with a resource.",
		Arguments: []*sdk.PromptArgument{{Name: "resourceUri", Description: "Its URI.", Required: true}},
	}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return userSays(
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{
				URI: r.Params.Arguments["resourceUri"], MIMEType: "text/plain",
				Text: "Embedded resource content for testing.",
			}},
			&sdk.TextContent{Text: "Please process the embedded resource above."},
		), nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "test_prompt_with_image", Description: "A prompt with an image."},
		func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return userSays(
				&sdk.ImageContent{Data: redDot(), MIMEType: "image/png"},
				&sdk.TextContent{Text: "Please analyze the image above."},
			), nil
		})
	s.AddPrompt(&sdk.Prompt{
		Name: "test_input_required_result_prompt", Description: "A prompt that asks for input by its result.",
	}, askContext)
}

func addPrompt(s *sdk.Server, name, description, says string) {
	s.AddPrompt(&sdk.Prompt{Name: name, Description: description},
		func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return userSays(&sdk.TextContent{Text: says}), nil
		})
}

// userSays is a prompt in which the user says contents.
func userSays(contents ...sdk.Content) *sdk.GetPromptResult {
	result := &sdk.GetPromptResult{Description: "A prompt for testing."}
	for _, c := range contents {
		result.Messages = append(result.Messages, &sdk.PromptMessage{Role: "user", Content: c})
	}
	return result
}

func askContext(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	if given := filled(r.Params.InputResponses, "user_context", "context"); given != "" {
		return userSays(&sdk.TextContent{Text: "Context: " + given}), nil
	}
	return &sdk.GetPromptResult{InputRequests: sdk.InputRequestMap{
		"user_context": form("Which context?",
			`{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`),
	}}, nil
}
