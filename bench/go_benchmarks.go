package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// benchmarked is the result of one package benchmark.
type benchmarked struct {
	calls   int
	figures map[string]float64 // by unit, such as p99-ms
}

// benchmarks maps names without the prefix Benchmark to results.
type benchmarks map[string]benchmarked

// missing returns an error for the first of the given names that has no result.
func (m benchmarks) missing(names ...string) error {
	for _, name := range names {
		if _, ok := m[name]; !ok {
			return fmt.Errorf("there is no benchmark %s", name)
		}
	}
	return nil
}

// goBenchmarks runs benchmarks of a package. lasting is the time or number of runs of each. A
// skipped benchmark, for example without PostgreSQL, is not in the result. Additional
// environment variables may be given.
func goBenchmarks(ctx context.Context, room, names, lasting string, env ...string) (benchmarks, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-tags", "sqlite_fts5,sqlite_math_functions", "-run", "^$",
		"-bench", "^Benchmark("+names+")$", "-benchtime", lasting, "-timeout", "1h", room)
	cmd.Dir = ".." // the product's module
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench: %w: %s", err, out)
	}
	return readBenchmarks(string(out))
}

// readBenchmarks parses the benchmark output of go test.
func readBenchmarks(out string) (benchmarks, error) {
	found := benchmarks{}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		name, ok := strings.CutPrefix(line, "Benchmark")
		if !ok || len(fields) < 4 {
			continue
		}
		name = strings.Fields(name)[0]
		if i := strings.LastIndexByte(name, '-'); i >= 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i] // the number of processors
			}
		}
		m := benchmarked{figures: map[string]float64{}}
		var err error
		m.calls, err = strconv.Atoi(fields[1])
		for i := 2; i+1 < len(fields) && err == nil; i += 2 {
			m.figures[fields[i+1]], err = strconv.ParseFloat(fields[i], 64)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		found[name] = m
	}
	return found, nil
}
