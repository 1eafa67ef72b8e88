// Package servecmd contains the commands for servers: serve, open, tools and the tokens. It also
// connects the tools of the MCP server to the use cases.
package servecmd
