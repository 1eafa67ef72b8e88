package project

import (
	"iter"
	"os"
	"strings"
)

// Process names a running process permanently: its number may be given to another
// one, but not together with its start. The zero value means unknown.
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

// processInfo is what the system tells about a process.
type processInfo struct {
	Process
	parent int
	name   string // of its program, lower case, without folder and extension
}

// HarnessProcess is the process that started this one, shells in between passed
// over, since hooks may be run through one. It is zero where that cannot be
// told, among others for an orphan, and never the system's own first process or
// a container's. No process is started to find out.
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

// Ancestors lists the processes above this one, the parent first, at most 16;
// it ends early where one cannot be told.
func Ancestors() []Process {
	list := []Process{}
	for p := range parents() {
		list = append(list, p.Process)
	}
	return list
}

// parents yields the processes above this one, the parent first.
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
			// A parent younger than its child is another process under the number of
			// one that has ended.
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

// isInit recognises programs that adopt orphans and therefore say nothing about
// who started them.
func isInit(name string) bool {
	switch name {
	case "init", "systemd", "launchd", "tini", "dumb-init", "docker-init", "catatonit", "s6-svscan", "runsvdir",
		"explorer", "services":
		return true
	}
	return false
}
