package project

import (
	"iter"
	"os"
	"strings"
)

// Process identifies a process permanently: its number may be reused, but not together
// with its start. The zero value means unknown.
type Process struct {
	PID   int
	Start int64 // opaque; equal only for the same process of the same boot
}

// Runs reports whether the process still runs. It is false for the zero Process.
func (p Process) Runs() bool {
	if p.PID == 0 {
		return false
	}
	info, ok := openProcesses().inspect(p.PID)
	return ok && info.Process == p
}

// maxAncestors bounds how far parents are followed.
const maxAncestors = 16

// processInfo describes a process.
type processInfo struct {
	Process
	parent int
	name   string // name of its program, lower case, without folder and extension
}

// HarnessProcess returns the process that started this one. It skips shells in between,
// because a shell may run the hook. It returns the zero Process if the parent is unknown,
// for example for an orphan, and never the first process of the system or a container. It
// starts no process.
func HarnessProcess() Process {
	for p := range parents() {
		switch {
		case isInit(p.name):
			return Process{}
		case !isShell(p.name):
			return p.Process
		}
	}
	return Process{}
}

// Ancestors returns the ancestors of this process, the parent first, at most 16. It ends
// early at an unknown one.
func Ancestors() []Process {
	list := []Process{}
	for p := range parents() {
		list = append(list, p.Process)
	}
	return list
}

// parents yields the ancestors of this process, the parent first.
func parents() iter.Seq[processInfo] {
	return func(yield func(processInfo) bool) {
		table := openProcesses()
		p, ok := table.inspect(os.Getpid())
		for range maxAncestors {
			if !ok || p.parent <= 0 {
				return
			}
			child := p.Process
			p, ok = table.inspect(p.parent)
			// A parent younger than its child is another process that reuses the number
			// of an ended one.
			if !ok || p.PID == child.PID || p.Start > child.Start || !yield(p) {
				return
			}
		}
	}
}

func programName(path string) string {
	if i := strings.LastIndexAny(path, `/\`); i >= 0 {
		path = path[i+1:]
	}
	return strings.TrimPrefix(strings.TrimSuffix(strings.ToLower(path), ".exe"), "-")
}

func isShell(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "busybox", "fish", "csh", "tcsh", "nu",
		"cmd", "powershell", "pwsh", "env", "timeout", "nice", "nohup", "cairn-hook":
		return true
	}
	return false
}

// isInit reports whether a program adopts orphans. Such a parent does not show who
// started the process.
func isInit(name string) bool {
	switch name {
	case "init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runsvdir",
		"explorer", "services":
		return true
	}
	return false
}
