// Package projectcmd contains the commands for sessions and projects: import, export, mark, pin,
// unpin and project.
package projectcmd
