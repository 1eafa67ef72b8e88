package harness

import (
	_ "embed" // the plugin
	"os"
	"path/filepath"
)

// The locations of the harnesses' settings, and the entries that init writes there (contract
// observations §15).

func claudeDir(h Homes) string { return h.in("CLAUDE_CONFIG_DIR", ".claude") }
func codexDir(h Homes) string  { return h.in("CODEX_HOME", ".codex") }
func geminiDir(h Homes) string { return h.in("", ".gemini") }
func cursorDir(h Homes) string { return h.in("", ".cursor") }

// hooked returns hook entries that have only an event and a timeout.
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
			{Event: "PreToolUse", Matcher: "*", Bare: "Edit|Write|MultiEdit|NotebookEdit", Timeout: 10, Helps: true}, // the guard needs no other tools (mail §8)
			{Event: "PostToolUse", Matcher: "*", Timeout: 10},
			{Event: "PostToolUseFailure", Matcher: "*", Timeout: 10, Since: [3]int{2, 1, 0}},
			{Event: "Stop", Timeout: 10},
			{Event: "SubagentStop", Timeout: 10},
			{Event: "PostCompact", Timeout: 10, Since: [3]int{2, 1, 76}},
			{Event: "SessionEnd", Timeout: 1}, // the host allows 1.5 s for all hooks
		},
	}
}

// claudeSettings returns Claude Code's settings files. Its state file contains the user-level MCP
// servers. The state file is next to the settings folder, or inside a folder that was moved.
func claudeSettings(h Homes) []File {
	dir := claudeDir(h)
	state := filepath.Join(h.User, ".claude.json")
	if dir != filepath.Join(h.User, ".claude") {
		state = filepath.Join(dir, ".claude.json")
	}
	return []File{
		{Path: filepath.Join(dir, "settings.json"), Hooks: true, Status: true},
		{Path: state, Server: Server{Under: "mcpServers", Type: "stdio"}},
	}
}

// codexHooks returns Codex's hooks. Codex has no event for failures and allows SessionEnd 3 s.
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

// cursorHooks returns Cursor's hooks without postToolUse, which would repeat the after… events.
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

func openCodeDir(h Homes) string {
	return filepath.Join(h.in("XDG_CONFIG_HOME", ".config"), "opencode")
}

// openCodeKept returns the SQLite file in which OpenCode stores its sessions.
func openCodeKept(h Homes) []string {
	return []string{filepath.Join(h.in("XDG_DATA_HOME", ".local", "share"), "opencode", "opencode.db")}
}

// openCodePlugin calls cairn on OpenCode's events and adds cairn's output to the conversation.
// OpenCode has no hooks that run commands.
//
//go:embed opencode.js
var openCodePlugin string

// openCodeSettings returns OpenCode's settings files. An existing file under another supported
// name is kept. A new file gets the default name.
func openCodeSettings(h Homes) []File {
	dir := openCodeDir(h)
	config := filepath.Join(dir, "opencode.json")
	if _, err := os.Stat(config); err != nil {
		if other := filepath.Join(dir, "opencode.jsonc"); isThereFile(other) {
			config = other
		}
	}
	return []File{
		{Path: filepath.Join(dir, "plugin", "cairn.js"), Format: Script, Text: openCodePlugin},
		{Path: config, Server: Server{Under: "mcp", Type: "local", OneList: true}},
	}
}

func isThereFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func copilotDir(h Homes) string { return h.in("COPILOT_HOME", ".copilot") }

// copilotHooks returns Copilot CLI's hooks under Claude Code's event names. With these names,
// Copilot CLI sends payloads that contain the event's name.
func copilotHooks() Hooks {
	hooks := hooked(10, "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionEnd")
	hooks[1].Helps, hooks[2].Helps = true, true
	return Hooks{Form: HookForm{Flat: true, Version: true, Typed: true, Timeout: "timeoutSec"}, Wanted: hooks}
}

func copilotSettings(h Homes) []File {
	dir := copilotDir(h)
	return []File{
		{Path: filepath.Join(dir, "hooks", "cairn.json"), Hooks: true},
		{Path: filepath.Join(dir, "mcp-config.json"), Server: Server{Under: "mcpServers", Type: "local", Tools: true}},
	}
}

func qwenDir(h Homes) string { return h.in("", ".qwen") }

func qwenHooks() Hooks {
	hooks := hooked(10_000, "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SubagentStop", "SessionEnd")
	hooks[1].Helps = true
	hooks[2].Matcher = "^(edit|write_file)$" // for the guard
	return Hooks{
		Form:   HookForm{Typed: true, Named: true, Millis: true, Switches: []Switch{{Path: []string{"disableAllHooks"}, Off: true}}},
		Wanted: hooks,
	}
}

func qwenSettings(h Homes) []File {
	return []File{{Path: filepath.Join(qwenDir(h), "settings.json"), Hooks: true, Server: Server{Under: "mcpServers"}}}
}

func windsurfDir(h Homes) string { return h.in("", ".codeium", "windsurf") }

// windsurfHooks returns Cascade's hooks. They cannot add text to the conversation.
func windsurfHooks() Hooks {
	return Hooks{
		Form: HookForm{Flat: true, Quiet: true, Windows: PowerShell},
		Wanted: hooked(0, "pre_user_prompt", "pre_write_code", "post_read_code", "post_write_code", "post_run_command", "post_mcp_tool_use",
			"post_cascade_response"),
	}
}

// rules instructs a model to call cairn, for hosts whose hooks cannot provide a context.
const rules = `<!-- cairn: {{head}} -->
## Memory and coordination (cairn)
- At the start of a session call the MCP tool ` + "`macro_start_session`" + ` of the server cairn; it shows what happened
  before, who else works here, and your mail.
- Before you look for how something was done or decided, call ` + "`recall`" + ` with a short question.
- Before you edit files that others may edit too, reserve them with ` + "`file_reservation_paths`" + `.
<!-- cairn: end -->
`

func windsurfSettings(h Homes) []File {
	dir := windsurfDir(h)
	return []File{
		{Path: filepath.Join(dir, "hooks.json"), Hooks: true},
		{Path: filepath.Join(dir, "mcp_config.json"), Server: Server{Under: "mcpServers"}},
		{Path: filepath.Join(dir, "memories", "global_rules.md"), Format: Block, Text: rules},
	}
}

func clineDir(h Homes) string { return h.in("CLINE_DIR", ".cline") }

func clineData(h Homes) string {
	if h.Getenv != nil && h.Getenv("CLINE_DATA_DIR") != "" {
		return filepath.Clean(h.Getenv("CLINE_DATA_DIR"))
	}
	return filepath.Join(clineDir(h), "data")
}

// clineHook is the script that Cline runs with bash on an event. The script's file name is the
// event's name.
const clineHook = `# {{head}}
exec {{quoted}} record --from cline
`

// clineSettings returns the settings files of Cline's own program. If its extension for VS Code is
// used, they include the extension's file for MCP servers.
func clineSettings(h Homes) []File {
	const settings = "cline_mcp_settings.json"
	files := []File{
		{Path: filepath.Join(clineData(h), "settings", settings), Server: Server{Under: "mcpServers"}},
		{Path: filepath.Join(clineDir(h), "rules", "cairn.md"), Format: Block, Text: rules},
	}
	for _, event := range [...]string{"PreToolUse", "PostToolUse", "TaskComplete", "TaskCancel", "TaskError", "SessionShutdown"} {
		files = append(files, File{Path: filepath.Join(clineDir(h), "hooks", event+".sh"), Format: Script, Text: clineHook})
	}
	for _, app := range [...]string{".config", filepath.Join("Library", "Application Support"), filepath.Join("AppData", "Roaming")} {
		path := filepath.Join(h.User, app, "Code", "User", "globalStorage", "saoudrizwan.claude-dev", "settings", settings)
		if isThereFile(path) {
			files = append(files, File{Path: path, Server: Server{Under: "mcpServers"}})
		}
	}
	return files
}
