package model

import "time"

// Kind is the kind of a script's step.
type Kind string

// The kinds of steps.
const (
	KindSay   Kind = "say"
	KindShell Kind = "shell"
	KindRead  Kind = "read"
	KindEdit  Kind = "edit"
	KindTool  Kind = "tool"
)

// Step is one response of the scripted model: a text or one tool call. It does not
// name the program's tool. The server picks the tool from those the request offers.
type Step struct {
	Kind     Kind
	Text     string         // KindSay
	Command  string         // KindShell
	File     string         // KindRead, KindEdit: absolute path
	Old, New string         // KindEdit: whole lines without the last newline
	Tool     string         // KindTool: name of a cairn MCP tool
	Args     map[string]any // KindTool

	// WaitFor, if set, delays the response until it returns true, at most 30 s.
	WaitFor func() bool
	// Tokens is the size of the conversation that the response reports. 0 means 1000.
	Tokens int
}

// Say returns a step in which the model ends its turn with a text.
func Say(text string) Step { return Step{Kind: KindSay, Text: text} }

// Shell returns a step that runs a shell command.
func Shell(command string) Step { return Step{Kind: KindShell, Command: command} }

// Read returns a step that reads a file.
func Read(file string) Step { return Step{Kind: KindRead, File: file} }

// Edit returns a step that replaces lines in a file.
func Edit(file, before, after string) Step {
	return Step{Kind: KindEdit, File: file, Old: before, New: after}
}

// Tool returns a step that calls a cairn MCP tool.
func Tool(name string, args map[string]any) Step {
	return Step{Kind: KindTool, Tool: name, Args: args}
}

const (
	maxWait       = 30 * time.Second
	pollInterval  = 100 * time.Millisecond
	defaultTokens = 1000
)

func (s Step) wait() {
	if s.WaitFor == nil {
		return
	}
	for end := time.Now().Add(maxWait); time.Now().Before(end) && !s.WaitFor(); {
		time.Sleep(pollInterval)
	}
}

func (s Step) tokens() int {
	if s.Tokens == 0 {
		return defaultTokens
	}
	return s.Tokens
}
