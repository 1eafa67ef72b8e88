// Package service provides one handle for all of mail. The methods of Mail are the tools of the
// contract (mail §5).
//
// Besides the calls of the mail packages, Mail has the calls that combine several of them: the
// macros, the MCP resources, the notices that hooks show to agents, and the views of the human
// overseer.
// human overseer.
package service
