// Package service provides one handle for all of mail. The methods of Mail are the tools of the
// contract (mail §5).
//
// Mail has the calls of the other mail packages, and those that combine several of them. These are
// the macros, the MCP resources, the notices that hooks show to agents, and the views of the human
// overseer.
package service
