package harness

import "path/filepath"

// Where the harnesses keep their settings, and what init writes there (contract
// observations §15).

func claudeDir(h Homes) string { return h.in("CLAUDE_CONFIG_DIR", ".claude") }
func codexDir(h Homes) string  { return h.in("CODEX_HOME", ".codex") }
func geminiDir(h Homes) string { return h.in("", ".gemini") }
func cursorDir(h Homes) string { return h.in("", ".cursor") }

// hooked are entries for events that need no more than a timeout.
func hooked(timeout int, events ...string) (hooks []HookEntry) {
	for _, event := range events {
		hooks = append(hooks, HookEntry{Event: event, Timeout: timeout})
	}
	return hooks
}

func claudeHooks() Hooks {
	return Hooks{
		Form: HookForm{
			Typed: true, Windows: GitBash, Apart: [3]int{2, 1, 139},
			Switches: []Switch{{Path: []string{"disableAllHooks"}, Off: true}},
		},
		Wanted: []HookEntry{
			{Event: "SessionStart", Timeout: 10},
			{Event: "UserPromptSubmit", Timeout: 10, Helps: true},
			{Event: "PreToolUse", Matcher: "*", Bare: "Edit|Write|MultiEdit|NotebookEdit", Timeout: 10, Helps: true}, // the guard needs no others (mail §8)
			{Event: "PostToolUse", Matcher: "*", Timeout: 10},
			{Event: "PostToolUseFailure", Matcher: "*", Timeout: 10, Since: [3]int{2, 1, 0}},
			{Event: "Stop", Timeout: 10},
			{Event: "SubagentStop", Timeout: 10},
			{Event: "PostCompact", Timeout: 10, Since: [3]int{2, 1, 76}},
			{Event: "SessionEnd", Timeout: 1}, // its host allows 1.5 s for all
		},
	}
}

// claudeSettings are Claude Code's files. Its own state lies beside its folder, or in
// it when the folder was moved, and holds the user-level MCP servers.
func claudeSettings(h Homes) []File {
	dir := claudeDir(h)
	state := filepath.Join(h.User, ".claude.json")
	if dir != filepath.Join(h.User, ".claude") {
		state = filepath.Join(dir, ".claude.json")
	}
	return []File{
		{Path: filepath.Join(dir, "settings.json"), Hooks: true},
		{Path: state, Server: Server{Under: "mcpServers", Type: "stdio"}},
	}
}

// codexHooks: Codex has no event for failures and allows SessionEnd 3 s.
func codexHooks() Hooks {
	return Hooks{
		Form: HookForm{
			Typed: true, Trusted: true,
			Switches: []Switch{{Path: []string{"features", "hooks"}}, {Path: []string{"features", "codex_hooks"}}},
		},
		Wanted: []HookEntry{
			{Event: "SessionStart", Timeout: 10},
			{Event: "UserPromptSubmit", Timeout: 10, Helps: true},
			{Event: "PreToolUse", Timeout: 10, Helps: true},
			{Event: "PostToolUse", Timeout: 10},
			{Event: "Stop", Timeout: 10},
			{Event: "SubagentStop", Timeout: 10},
			{Event: "PostCompact", Timeout: 10},
			{Event: "SessionEnd", Timeout: 3},
		},
	}
}

func codexSettings(h Homes) []File {
	dir := codexDir(h)
	return []File{
		{Path: filepath.Join(dir, "hooks.json"), Hooks: true},
		{Path: filepath.Join(dir, "config.toml"), Format: TOML, Server: Server{Under: "mcp_servers"}},
	}
}

func geminiHooks() Hooks {
	hooks := hooked(10_000, "SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd")
	hooks[2].Matcher = "write_file|replace" // for the guard
	return Hooks{
		Form:   HookForm{Typed: true, Named: true, Millis: true, Switches: []Switch{{Path: []string{"hooksConfig", "enabled"}}}},
		Wanted: hooks,
	}
}

func geminiSettings(h Homes) []File {
	return []File{{Path: filepath.Join(geminiDir(h), "settings.json"), Hooks: true, Server: Server{Under: "mcpServers"}}}
}

// cursorHooks leave postToolUse out, which would tell again what the after… events tell.
func cursorHooks() Hooks {
	hooks := hooked(0, "sessionStart", "beforeSubmitPrompt", "preToolUse", "afterShellExecution", "afterFileEdit", "afterMCPExecution",
		"afterAgentResponse", "stop", "sessionEnd")
	hooks[2].Matcher = "Write|Edit|StrReplace|MultiEdit|EditNotebook|Delete|ApplyPatch" // for the guard
	return Hooks{Form: HookForm{Flat: true, Version: true, Windows: Cmd}, Wanted: hooks}
}

func cursorSettings(h Homes) []File {
	dir := cursorDir(h)
	return []File{
		{Path: filepath.Join(dir, "hooks.json"), Hooks: true},
		{Path: filepath.Join(dir, "mcp.json"), Server: Server{Under: "mcpServers"}},
	}
}
