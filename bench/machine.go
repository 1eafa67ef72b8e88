package main

import (
	"bufio"
	"debug/buildinfo"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine describes the environment of a run, apart from the program.
type machine struct {
	OS     string `json:"os"`
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Load   string `json:"load"` // over the last 1, 5 and 15 minutes, at the start of the run
	Go     string `json:"go"`
	Cairn  string `json:"cairn"` // output of cairn --version
	GoTags string `json:"go_tags"`
}

func readMachine(p program) (machine, error) {
	m := machine{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), CPU: "unknown", Load: "unknown"}
	p.args = []string{"--version"}
	l, err := p.run(nil)
	if err != nil {
		return m, err
	}
	m.Cairn = strings.TrimSpace(string(l.out))
	info, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return m, err
	}
	m.Go = info.GoVersion
	for _, s := range info.Settings {
		if s.Key == "-tags" {
			m.GoTags = s.Value
		}
	}
	if name := cpuName(); name != "" {
		m.CPU = name
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(text))[:3], " ")
	}
	return m, nil
}

// cpuName returns the processor's name from /proc, if available.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (m machine) String() string {
	return fmt.Sprintf("%s; %s, %d cores, %s; %s; load %s", m.Cairn, m.CPU, m.Cores, m.OS, m.Go, m.Load)
}
