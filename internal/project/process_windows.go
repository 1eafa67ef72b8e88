package project

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// processes asks the kernel about one process at a time: a snapshot of all of
// them takes milliseconds.
type processes struct{}

func openProcesses() processes { return processes{} }

// inspect reads a process's parent, program and start in 100 ns since 1601. The parent
// may have ended, and another process may have its number.
func (processes) inspect(pid int) (info processInfo, ok bool) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return processInfo{}, false
	}
	defer func() { ok = windows.CloseHandle(h) == nil && ok }()
	var basic windows.PROCESS_BASIC_INFORMATION
	err = windows.NtQueryInformationProcess(h, windows.ProcessBasicInformation,
		unsafe.Pointer(&basic), uint32(unsafe.Sizeof(basic)), nil)
	if err != nil {
		return processInfo{}, false
	}
	var start, exit, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &start, &exit, &kernel, &user); err != nil {
		return processInfo{}, false
	}
	name := make([]uint16, windows.MAX_LONG_PATH)
	size := uint32(len(name))
	if err := windows.QueryFullProcessImageName(h, 0, &name[0], &size); err != nil {
		return processInfo{}, false
	}
	return processInfo{
		Process: Process{PID: pid, Start: int64(start.HighDateTime)<<32 | int64(start.LowDateTime)},
		parent:  int(basic.InheritedFromUniqueProcessId),
		name:    programName(windows.UTF16ToString(name[:size])),
	}, true
}
