//go:build conformance

package conformance

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addContentTools adds a tool for each kind of content.
func addContentTools(s *sdk.Server) {
	returning := func(content ...sdk.Content) sdk.ToolHandler {
		return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		}
	}
	picture := &sdk.ImageContent{Data: redDot(), MIMEType: "image/png"}
	sound := &sdk.AudioContent{Data: silence(), MIMEType: "audio/wav"}
	addTool(s, "test_image_content", "Returns an image.", returning(picture))
	addTool(s, "test_audio_content", "Returns a sound.", returning(sound))
	addTool(s, "test_embedded_resource", "Returns a resource.", returning(&sdk.EmbeddedResource{
		Resource: &sdk.ResourceContents{
			URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
		},
	}))
	addTool(s, "test_multiple_content_types", "Returns text, an image and a resource.", returning(
		&sdk.TextContent{Text: "Multiple content types test:"}, picture,
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{
			URI: "test://mixed-content-resource", MIMEType: "application/json", Text: `{"test":"data","value":123}`,
		}},
	))
	addToolWithSchema(s, "json_schema_2020_12_tool", "Shows that a schema reaches clients unchanged.", richSchema, returning(
		&sdk.TextContent{Text: "called"},
	))
	addToolWithSchema(s, "test_x_mcp_header", "Has an argument that clients repeat in a header.", headerSchema, returning(
		&sdk.TextContent{Text: "called"},
	))
}

// headerSchema asks for the header Mcp-Param-Region.
const headerSchema = `{"type":"object","properties":{
	"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`

// richSchema uses the keywords of JSON Schema 2020-12 that the suite looks for.
const richSchema = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object",
		"properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"}, "email": {"type": "string"}},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false}`

// redDot is a PNG of one pixel.
func redDot() []byte {
	dot := image.NewRGBA(image.Rect(0, 0, 1, 1))
	dot.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, dot); err != nil {
		panic(err) // a buffer takes every write
	}
	return b.Bytes()
}

// silence is a WAV file with one sample: 8 kHz, mono, 8 bit.
func silence() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32([]byte("RIFF"), 38)
	b = le.AppendUint32(append(b, "WAVEfmt "...), 16)
	b = le.AppendUint16(le.AppendUint16(b, 1), 1)
	b = le.AppendUint32(le.AppendUint32(b, 8000), 8000)
	b = le.AppendUint16(le.AppendUint16(b, 1), 8)
	b = le.AppendUint32(append(b, "data"...), 2)
	return append(b, 128, 128)
}
