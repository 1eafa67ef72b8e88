package prompts

// Limits for the tests.
const (
	MaxPrompt      = maxPrompt
	MaxPromptWords = maxPromptWords
)
