package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// tool is one tool that a request offers.
type tool struct {
	name       string // the name in calls, without the namespace
	namespace  string // only in the Responses API, else ""
	custom     bool   // accepts text instead of JSON arguments
	definition map[string]any
}

// Call is one tool call of a response.
type Call struct {
	Name      string         `json:"name"`
	Namespace string         `json:"namespace,omitempty"`
	Args      map[string]any `json:"args,omitempty"`
	Input     string         `json:"input,omitempty"` // only for a custom tool
}

func (c Call) arguments() string {
	data, err := json.Marshal(c.Args)
	if err != nil {
		panic(err) // scripts contain JSON values only
	}
	return string(data)
}

// offeredTools returns the tools of a request of any protocol.
func offeredTools(body map[string]any) []tool {
	var list []tool
	for _, definition := range definitions(body) {
		list = append(list, flatten(definition)...)
	}
	return list
}

// definitions returns the tool definitions of a request. The Responses API may also add
// tools with an item of the input.
func definitions(body map[string]any) []map[string]any {
	list := objects(body["tools"])
	for _, item := range objects(body["input"]) {
		if item["type"] == "additional_tools" {
			list = append(list, objects(item["tools"])...)
		}
	}
	return list
}

// flatten returns the tools of one definition, which may contain several.
func flatten(definition map[string]any) []tool {
	var list []tool
	switch {
	case definition["type"] == "namespace":
		for _, inner := range objects(definition["tools"]) {
			list = append(list, newTool(inner, text(definition["name"])))
		}
	case definition["functionDeclarations"] != nil:
		for _, inner := range objects(definition["functionDeclarations"]) {
			list = append(list, newTool(inner, ""))
		}
	default:
		if function, ok := definition["function"].(map[string]any); ok {
			definition = function
		}
		list = append(list, newTool(definition, ""))
	}
	return list
}

func newTool(definition map[string]any, namespace string) tool {
	name := text(definition["name"])
	if name == "" {
		name = text(definition["type"])
	}
	return tool{name: name, namespace: namespace, custom: definition["type"] == "custom", definition: definition}
}

// ownTools contains the names of tools that only an agent's conversation offers.
var ownTools = []string{"Bash", "exec_command", "shell_command", "shell", "run_shell_command", "bash", "local_shell", "exec", "read_file", "run_commands"}

func hasOwnTools(tools []tool) bool { return pick(tools, ownTools...) != nil }

// pick returns the first offered tool of the given names, or nil.
func pick(tools []tool, names ...string) *tool {
	for _, name := range names {
		for i := range tools {
			if tools[i].name == name {
				return &tools[i]
			}
		}
	}
	return nil
}

// isCairn reports whether a tool belongs to cairn's MCP server.
func (t tool) isCairn() bool { return strings.Contains(t.namespace+t.name, "cairn") }

// cairnTool returns the cairn tool with the given MCP name, or nil if it is not offered.
func cairnTool(tools []tool, name string) *tool {
	for i := range tools {
		whole := tools[i].namespace + tools[i].name
		if _, after, ok := strings.Cut(whole, "cairn"); ok && strings.TrimLeft(after, "_-.") == name {
			return &tools[i]
		}
	}
	return nil
}

// callFor returns the call that performs a step. It reports false if the request offers no tool
// for it.
func callFor(step Step, tools []tool) (Call, bool) {
	if code := pick(tools, "exec"); code != nil && code.custom {
		return Call{Name: code.name, Namespace: code.namespace, Input: javaScript(step)}, true
	}
	switch step.Kind {
	case KindShell:
		return shellCall(step.Command, tools)
	case KindRead:
		return readCall(step.File, tools)
	case KindEdit:
		return editCall(step, tools)
	case KindTool:
		return cairnCall(step, tools)
	}
	return Call{}, false
}

// newCall returns a call of t. It reports false if t is nil.
func newCall(t *tool, args map[string]any) (Call, bool) {
	if t == nil {
		return Call{}, false
	}
	return Call{Name: t.name, Namespace: t.namespace, Args: args}, true
}

func cairnCall(step Step, tools []tool) (Call, bool) {
	if t := cairnTool(tools, step.Tool); t != nil {
		return newCall(t, step.Args)
	}
	return newCall(cairnTool(tools, "call_tool"), map[string]any{"name": step.Tool, "arguments": step.Args})
}

func shellCall(command string, tools []tool) (Call, bool) {
	t := pick(tools, "Bash", "exec_command", "shell_command", "shell", "run_shell_command", "bash", "run_commands")
	if t == nil {
		return Call{}, false
	}
	switch t.name {
	case "run_commands":
		return newCall(t, map[string]any{"commands": []string{command}})
	case "exec_command":
		return newCall(t, map[string]any{"cmd": command})
	case "shell":
		return newCall(t, map[string]any{"command": []string{"bash", "-lc", command}})
	case "shell_command":
		return newCall(t, map[string]any{"command": command})
	}
	return newCall(t, map[string]any{"command": command, "description": "Run a command"})
}

// readCall returns a call that reads a file. Codex has no tool for that and uses its shell.
func readCall(file string, tools []tool) (Call, bool) {
	t := pick(tools, "Read", "read_file", "read", "view")
	if several := pick(tools, "read_files"); several != nil {
		return newCall(several, map[string]any{"files": []map[string]any{{"path": file}}})
	}
	if t == nil {
		return shellCall("cat "+file, tools)
	}
	return newCall(t, map[string]any{t.parameter("file_path", "filePath", "absolute_path", "path"): file})
}

func editCall(step Step, tools []tool) (Call, bool) {
	if t := pick(tools, "Edit", "replace", "edit", "editor"); t != nil {
		args := map[string]any{
			t.parameter("file_path", "filePath", "path"):                  step.File,
			t.parameter("old_string", "oldString", "old_str", "old_text"): step.Old,
			t.parameter("new_string", "newString", "new_str", "new_text"): step.New,
		}
		if t.has("instruction") {
			args["instruction"] = "Change the lines."
		}
		return newCall(t, args)
	}
	t := pick(tools, "apply_patch")
	if t == nil {
		return shellCall("apply_patch <<'EOP'\n"+patch(step)+"\nEOP", tools)
	}
	if t.custom {
		return Call{Name: t.name, Namespace: t.namespace, Input: patch(step)}, true
	}
	return newCall(t, map[string]any{t.parameter("input", "patchText", "patch"): patch(step)})
}

// parameter returns the first of the given names that the tool's schema contains, else the
// first name.
func (t tool) parameter(names ...string) string {
	for _, name := range names {
		if t.has(name) {
			return name
		}
	}
	return names[0]
}

func (t tool) has(parameter string) bool {
	for _, key := range []string{"input_schema", "parameters", "parametersJsonSchema"} {
		schema, _ := t.definition[key].(map[string]any)
		properties, _ := schema["properties"].(map[string]any)
		if _, ok := properties[parameter]; ok {
			return true
		}
	}
	return false
}

// patch returns an edit in the language of apply_patch.
func patch(step Step) string {
	return fmt.Sprintf("*** Begin Patch\n*** Update File: %s\n@@\n%s\n%s\n*** End Patch",
		step.File, prefixLines("-", step.Old), prefixLines("+", step.New))
}

func prefixLines(prefix, lines string) string {
	return prefix + strings.ReplaceAll(lines, "\n", "\n"+prefix)
}

// javaScript returns a step as a program for the one tool of Codex's code mode.
func javaScript(step Step) string {
	switch step.Kind {
	case KindShell, KindRead:
		command := step.Command
		if step.Kind == KindRead {
			command = "cat " + step.File
		}
		return "text(await tools.exec_command(" + quoted(map[string]any{"cmd": command}) + "));"
	case KindEdit:
		return "text(await tools.apply_patch(" + quoted(patch(step)) + "));"
	}
	return fmt.Sprintf(`const find = (tool) => ALL_TOOLS.map(t => t.name).find(n => n.includes("cairn") && n.endsWith("__" + tool));
const direct = find(%[1]s);
if (direct) text(await tools[direct](%[2]s));
else if (find("call_tool")) text(await tools[find("call_tool")]({name: %[1]s, arguments: %[2]s}));
else text("There is no tool " + %[1]s);`, quoted(step.Tool), quoted(step.Args))
}

func quoted(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // scripts contain JSON values only
	}
	return string(data)
}

func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
