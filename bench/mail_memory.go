package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// processFields reads the numeric fields of a process's file in /proc, starting at the nth
// field after a name in brackets, if there is one. It returns nil if the file does not exist.
func processFields(pid int, file string) ([]float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if end := bytes.LastIndexByte(text, ')'); end >= 0 {
		text = text[end+3:] // skips the name, a space, and the state, a letter
	}
	var out []float64
	for _, field := range bytes.Fields(text) {
		n, parseErr := strconv.ParseFloat(string(field), 64)
		if err = errors.Join(err, parseErr); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, err
}

// cpuOf returns the CPU time of a running process, or 0 if it is not available.
func cpuOf(pid int) (time.Duration, error) {
	const userTime, systemTime, tick = 10, 11, 10 * time.Millisecond
	f, err := processFields(pid, "stat")
	if err != nil || len(f) <= systemTime {
		return 0, err
	}
	return time.Duration(f[userTime]+f[systemTime]) * tick, nil
}

// memoryWatch records a process's resident memory every second.
type memoryWatch struct {
	stop context.CancelFunc
	done sync.WaitGroup
	at   []float64 // seconds since the watch began
	size []float64 // MiB
}

// watchMemory begins a watch. It records nothing if memory use is not available.
func watchMemory(ctx context.Context, pid int) *memoryWatch {
	w := &memoryWatch{}
	ctx, w.stop = context.WithCancel(ctx)
	began := time.Now()
	w.done.Go(func() {
		for {
			if f, err := processFields(pid, "statm"); err == nil && len(f) > 1 {
				w.at = append(w.at, time.Since(began).Seconds())
				w.size = append(w.size, f[1]*float64(os.Getpagesize())/(1<<20))
			}
			if waitUntil(ctx, time.Now().Add(time.Second)) != nil {
				return
			}
		}
	})
	return w
}

// end ends the watch and adds its results to a table. Growth is the slope over the last three
// quarters, because caches fill before.
func (w *memoryWatch) end(t *table) {
	w.stop()
	w.done.Wait()
	if len(w.size) < 8 {
		return
	}
	n := len(w.size) / 4
	growth := slope(w.at[n:], w.size[n:]) * 3600
	t.note("resident memory of the server: %.0f MiB at the start, %.0f after a quarter, %.0f at the end",
		w.size[0], w.size[n], w.size[len(w.size)-1])
	r := t.add("memory, MiB more an hour", nil, nil, nil, nil, int(growth))
	if w.at[len(w.at)-1] >= 9*60 {
		r.target("≤ 50", growth <= 50)
	} else {
		t.note("memory that grows in a minute tells little of an hour: the bar of 50 MiB/h is held to after ten")
	}
}

// slope returns the slope of the line that fits the points best.
func slope(x, y []float64) float64 {
	var mx, my, xy, xx float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		xy, xx = xy+(x[i]-mx)*(y[i]-my), xx+(x[i]-mx)*(x[i]-mx)
	}
	if xx == 0 {
		return 0
	}
	return xy / xx
}

// machineTime returns the CPU time of the whole machine: the time used by all processes, and
// the total. Both are 0 if not available.
func machineTime() (used, all float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		const idle, waiting, steal = 4, 5, 8
		n, err := strconv.ParseFloat(field, 64)
		if err != nil || i > steal { // skips the name; guest time is already counted
			continue
		}
		if all += n; i != idle && i != waiting {
			used += n
		}
	}
	return used, all
}
