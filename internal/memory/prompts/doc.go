// Package prompts contains the instructions for agents that keep a memory: when to read it, what to
// add, and how to summarize (memories §12). A folder of the user may override each text.
package prompts
