// Package opencode describes OpenCode: the plugin that calls cairn, its settings, and the database
// that contains its sessions.
package opencode
