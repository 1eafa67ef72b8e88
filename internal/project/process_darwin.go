package project

import "golang.org/x/sys/unix"

// processes asks the kernel by sysctl.
type processes struct{}

func openProcesses() processes { return processes{} }

// inspect reads a process's parent, program and start in microseconds since
// 1970.
func (processes) inspect(pid int) (processInfo, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(info.Proc.P_pid) != pid {
		return processInfo{}, false
	}
	start := info.Proc.P_starttime
	return processInfo{
		Process: Process{PID: pid, Start: start.Sec*1_000_000 + int64(start.Usec)},
		parent:  int(info.Eproc.Ppid),
		name:    programName(unix.ByteSliceToString(info.Proc.P_comm[:])),
	}, true
}
