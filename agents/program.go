package main

// Program is one agent program and how to run it. In command lines, environments and files,
// {prompt}, {url}, {home} and {repo} are replaced.
type Program struct {
	Name    string // name in tables and in ONLY=
	Folder  string // folder of its npm packages below the cache folder
	Package string // npm package
	Version string
	Bin     string // command that the package installs
	Harness string // cairn's name for the program: --from, sessions

	New      []string // arguments of a new session
	Continue []string // arguments that continue the newest session
	Bypass   []string // added if the program may do everything
	Asking   []string // added if the program would ask before an edit
	Trusted  []string // added unless hooks are not trusted yet
	Env      map[string]string
	Files    map[string]string // settings that the program requires, below the home
	Settings map[string]string // like Files, written again before each session

	Compact *Compaction // nil: cannot be compacted headless

	ReadsTranscript bool   // hooks read the session's transcript
	Sessions        string // folder below the home with a session's files, found by its id; "" if it has no folder

	Hooks []string // hook events that a session must cause
	Rows  []string // types of rows that a session must store

	// Unheard counts, by type, the rows that are in transcripts but reported by no hook. They
	// come from the one compaction of the checks, unless the program has deleted the
	// transcript.
	Unheard map[string]int

	// Cannot explains what the program's host cannot support, by the name of the check. Such a
	// check is reported as INFO.
	Cannot map[string]string
}

// Compaction describes how to make a program compact its conversation.
type Compaction struct {
	Prompt string // prompt that requests it; "" if the model reports a full context
	Tokens int    // size of the conversation that the model reports first
	Sign   string // text of a request, or an event, that shows the compaction; not needed if a hook has source "compact"
}

// Names of checks that a table entry may refer to.
const (
	checkHooks     = "hooks fire"
	checkRows      = "rows are stored live"
	checkFailure   = "a failure is a failure"
	checkContext   = "context in session 2"
	checkMail      = "mail notice with the prompt"
	checkWarn      = "guard warns"
	checkBlock     = "guard blocks"
	checkParallel  = "two sessions, one reservation"
	checkResume    = "resume tells less"
	checkCompact   = "compact tells again"
	checkOnce      = "context is told once"
	checkResumes   = "resume works"
	checkShown     = "program reports no hook or MCP error"
	checkLeft      = "no process is left"
	checkImport    = "import equals live"
	checkUninstall = "uninstall restores files"
)

var commonRows = []string{"user_prompt", "agent_message", "command", "command_error", "file_edit", "git_commit"}

// programs returns the table of programs. To update a program, change its Version.
func programs() []Program {
	codex := Program{
		Name: "codex", Folder: "codex", Package: "@openai/codex", Version: "0.169.0", Bin: "codex", Harness: "codex",
		New:      []string{"exec", "{prompt}"},
		Continue: []string{"exec", "resume", "--last", "{prompt}"},
		Bypass: []string{
			"--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", "model_provider=scripted",
			"-c", `model_providers.scripted={name="scripted",base_url="{url}/v1",env_key="SCRIPTED_KEY",wire_api="responses"}`,
		},
		Trusted: []string{"--dangerously-bypass-hook-trust"},
		Env:     map[string]string{"SCRIPTED_KEY": "none"},
		Compact: &Compaction{Tokens: 2_000_000},

		ReadsTranscript: true,

		Hooks: []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"},
		Rows:  commonRows,
	}
	classic := codex
	classic.Name = "codex-classic"
	classic.Bypass = append([]string{"-m", "scripted-model"}, codex.Bypass...) // a program offers plain tools to an unknown model

	return []Program{
		{
			Name: "claude", Folder: "claude", Package: "@anthropic-ai/claude-code", Version: "2.1.330", Bin: "claude", Harness: "claude",
			New:      []string{"-p", "{prompt}"},
			Continue: []string{"-p", "{prompt}", "--continue"},
			Bypass:   []string{"--dangerously-skip-permissions"},
			Asking:   []string{"--permission-mode", "acceptEdits", "--allowedTools", "Bash,Edit,Read,Write,mcp__cairn"},
			Env: map[string]string{
				"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1", "DISABLE_TELEMETRY": "1",
				"DISABLE_AUTOUPDATER": "1", "DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			},
			Compact: &Compaction{Prompt: "/compact", Sign: "PostCompact"},
			Hooks:   []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"},
			Rows:    append([]string{"file_read"}, commonRows...),
		},
		codex,
		classic,
		{
			Unheard: map[string]int{"agent_message": 1}, // the summary
			Name:    "gemini", Folder: "gemini", Package: "@google/gemini-cli", Version: "0.61.0", Bin: "gemini", Harness: "gemini",
			New:      []string{"-p", "{prompt}", "--skip-trust"},
			Continue: []string{"-p", "{prompt}", "--skip-trust", "--resume", "latest"},
			Bypass:   []string{"--yolo"},
			Asking:   []string{"--approval-mode", "auto_edit"},
			Env: map[string]string{
				"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": "none", "GEMINI_TELEMETRY_ENABLED": "false",
			},
			Files:   map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}}` + "\n"},
			Compact: &Compaction{Tokens: 900_000, Sign: "<state_snapshot>"},
			Hooks:   []string{"SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"},
			Rows:    append([]string{"file_read"}, commonRows...),
		},
		{
			Name: "opencode", Folder: "opencode", Package: "opencode-ai", Version: "1.18.33", Bin: "opencode", Harness: "opencode",
			New:      []string{"run", "-m", "scripted/m", "{prompt}"},
			Continue: []string{"run", "-m", "scripted/m", "--continue", "{prompt}"},
			Env: map[string]string{
				"OPENCODE_CONFIG_CONTENT": `{"provider":{"scripted":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"{url}/v1","apiKey":"none"},` +
					`"models":{"m":{"name":"m","limit":{"context":200000,"output":8000}}}}},"permission":{"*":"allow"}}`,
				"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
			},
			Compact: &Compaction{Tokens: 250_000, Sign: "PostCompact"},
			Hooks:   []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"},
			Rows:    append([]string{"file_read"}, commonRows...),
		},
		{
			Unheard: map[string]int{"session_compact": 1},
			Name:    "copilot", Folder: "copilot", Package: "@github/copilot", Version: "1.0.102", Bin: "copilot", Harness: "copilot",
			New:      []string{"-p", "{prompt}", "--allow-all-tools", "--allow-all-paths"},
			Continue: []string{"-p", "{prompt}", "--allow-all-tools", "--allow-all-paths", "--continue"},
			Env: map[string]string{
				"COPILOT_PROVIDER_BASE_URL": "{url}/v1", "COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_API_KEY": "none",
				"COPILOT_MODEL": "scripted", "COPILOT_OFFLINE": "true",
			},
			ReadsTranscript: true,

			Compact: &Compaction{Tokens: 250_000, Sign: "respond only with the summary text"},
			Hooks:   []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"},
			Rows:    append([]string{"file_read"}, commonRows...),
		},
		{
			// 0.15.10 is the last version that runs with Node 20. 0.24 requires Node 22.
			Name: "qwen", Folder: "qwen", Package: "@qwen-code/qwen-code", Version: "0.15.10", Bin: "qwen", Harness: "qwen",
			New:      []string{"-p", "{prompt}"},
			Continue: []string{"-p", "{prompt}", "--continue"},
			Bypass:   []string{"--yolo"},
			Asking:   []string{"--approval-mode", "auto-edit"},
			Env: map[string]string{
				"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "scripted",
			},
			Files: map[string]string{".qwen/settings.json": `{"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": false}}` + "\n"},
			Hooks: []string{"UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"},
			Rows:  append([]string{"file_read"}, commonRows...),
		},
		{
			Name: "cline", Folder: "cline", Package: "cline", Version: "3.0.65", Bin: "cline", Harness: "cline",
			New:      []string{"--json", "{prompt}"},
			Continue: []string{"--json", "{prompt}"},
			Settings: map[string]string{".cline/data/settings/providers.json": `{"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {"openai-compatible": {"settings":` +
				` {"provider": "openai-compatible", "apiKey": "none", "model": "scripted", "baseUrl": "{url}/v1"}, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}}` + "\n"},
			Sessions: ".cline/data/sessions",
			Hooks:    []string{"tool_call", "tool_result", "agent_end"},
			Rows:     append([]string{"file_read"}, commonRows...),
			Cannot: map[string]string{
				checkContext:  "its hooks put nothing into the first request; its rules tell the model to ask",
				checkOnce:     "its hooks put nothing into the first request",
				checkMail:     "its hooks put nothing into the first request",
				checkResumes:  "it resumes a session by its id only",
				checkParallel: "the scripted model's address is a setting of the home, so that two sessions cannot have two",
				checkBlock:    "a refused call ends the run, and the person is told",
				checkShown:    "a refused call is an error of the run",
				checkLeft:     "it starts a daemon of its own",
			},
		},
	}
}
