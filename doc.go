// Package cairn is the façade over everything that cairn does: it opens the
// store, reads the settings and holds the use cases that span several rooms.
// The command line, MCP and HTTP edges call it and nothing below it.
package cairn
