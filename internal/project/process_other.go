//go:build !linux && !darwin && !windows

package project

// processes finds no process on systems that cairn does not support.
type processes struct{}

func openProcesses() processes { return processes{} }

func (processes) inspect(int) (processInfo, bool) { return processInfo{}, false }
