// Package setupcmd contains the commands that connect agents to cairn and show whether all works:
// init, uninstall, doctor and status.
package setupcmd
