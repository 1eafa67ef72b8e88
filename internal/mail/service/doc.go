// Package service gives callers one handle on all of mail: the methods of Mail are the tools
// of the contract (mail §5).
//
// Besides the calls of the packages below it, it has those that need several of them: the
// macros, the MCP resources, the notices that hooks show to agents, and the views of the
// human overseer.
package service
