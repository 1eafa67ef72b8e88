package project

import (
	"bytes"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
)

// processes reads /proc.
type processes struct {
	boot int64 // identifies this boot, in the bits above a start time
}

// startBits is the number of bits for clock ticks since boot. They suffice for 80,000
// years at 100 Hz.
const startBits = 48

func openProcesses() processes {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return processes{}
	}
	h := fnv.New64a()
	if _, err := h.Write(id); err != nil {
		return processes{}
	}
	return processes{boot: int64(h.Sum64() >> (startBits + 1) << startBits)}
}

// inspect reads a process's number, program, parent and start from its stat line; the
// program's name there may contain any characters, also brackets and spaces.
func (t processes) inspect(pid int) (processInfo, bool) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return processInfo{}, false
	}
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return processInfo{}, false
	}
	const parentField, startField = 1, 19 // after the name
	fields := strings.Fields(string(line[end+1:]))
	if len(fields) <= startField || fields[0] == "Z" { // Z: it has ended, but its parent has not reaped it yet
		return processInfo{}, false
	}
	parent, err := strconv.Atoi(fields[parentField])
	if err != nil {
		return processInfo{}, false
	}
	start, err := strconv.ParseInt(fields[startField], 10, startBits)
	if err != nil {
		return processInfo{}, false
	}
	return processInfo{
		Process: Process{PID: pid, Start: t.boot | start},
		parent:  parent,
		name:    programName(string(line[open+1 : end])),
	}, true
}
