//go:build !linux && !darwin && !windows

package project

// processes knows nothing on systems that cairn is not built for.
type processes struct{}

func openProcesses() processes { return processes{} }

func (processes) inspect(int) (processInfo, bool) { return processInfo{}, false }
