package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// startup measures how much longer cairn takes to start than an empty Go program, and which
// packages' initialisation costs most.
func (b *bench) startup(ctx context.Context) error {
	empty, err := b.plainComparison(ctx, "empty")
	if err != nil {
		return err
	}
	linked, err := b.comparison(ctx, "empty")
	if err != nil {
		return err
	}
	disabled, hook := b.cairnProgram("", "record"), b.hookProgram("")
	disabled.env = append(disabled.env, "CAIRN_DISABLE=1")
	hook.env = append(hook.env, "CAIRN_DISABLE=1")
	subjects := []*subject{
		{name: "empty Go program", program: empty},
		{name: "empty Go program, linked as cairn is", program: linked},
		{name: "cairn --version", program: b.cairnProgram("", "--version")},
		{name: "cairn record, CAIRN_DISABLE=1", program: disabled},
		{name: "the hook as init writes it, CAIRN_DISABLE=1", program: hook},
	}
	if err := b.oneByOne(subjects, b.runs*2, nil); err != nil {
		return err
	}
	t := newTable("startup", fmt.Sprintf("process start to exit, %d starts each in turn", len(subjects[0].wall)),
		"p50 ms", "p95 ms", "p99 ms", "cpu ms", "over empty ms")
	for _, s := range subjects {
		over := s.wall.median() - subjects[0].wall.median()
		r := t.add(s.name, s.wall.median(), s.wall.at(0.95), s.wall.at(0.99), s.cpu.median(), over)
		if s == subjects[len(subjects)-1] {
			r.target("≤ 2.2 times the empty program", ratio(s.wall.median(), subjects[0].wall.median()) <= 2.2)
		}
	}
	if err := b.publish(t); err != nil {
		return err
	}
	return b.initialisers()
}

// comparison builds one of the programs used for comparison, with the settings of cairn's own
// build.
func (b *bench) comparison(ctx context.Context, name string) (program, error) {
	p, err := b.programFor(name)
	if err != nil {
		return p, err
	}
	return p, buildLike(ctx, b.cairn, "cairn/bench/"+name, p.path)
}

// plainComparison builds such a program as `go build` does without a C compiler.
func (b *bench) plainComparison(ctx context.Context, name string) (program, error) {
	p, err := b.programFor(name + "-plain")
	if err != nil {
		return p, err
	}
	return p, build(ctx, []string{"-ldflags", "-s -w"}, []string{"CGO_ENABLED=0"}, "cairn/bench/"+name, p.path)
}

func (b *bench) programFor(name string) (program, error) {
	dir := filepath.Join(b.dir, "programs")
	p := program{path: filepath.Join(dir, name), env: b.environment(""), dir: b.load.Projects[0].Root}
	return p, os.MkdirAll(dir, 0o700)
}

// initialisers lists the packages with the most expensive initialisation.
func (b *bench) initialisers() error {
	const starts, shown = 9, 5
	took := map[string]sample{}
	p := b.cairnProgram("", "--version")
	p.env = append(p.env, "GODEBUG=inittrace=1")
	var all sample
	for range starts {
		l, err := p.run(nil)
		if err != nil {
			return err
		}
		var sum time.Duration
		for name, t := range initTimes(l.said) {
			took[name] = append(took[name], t)
			sum += t
		}
		all = append(all, sum)
	}
	names := make([]string, 0, len(took))
	for name := range took {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, c string) int {
		return cmp.Or(cmp.Compare(took[c].median(), took[a].median()), strings.Compare(a, c))
	})
	t := newTable("startup", fmt.Sprintf("the %d packages that initialise longest (GODEBUG=inittrace=1, median of %d)", shown, starts), "ms")
	for _, name := range names[:min(shown, len(names))] {
		t.add(name, took[name].median())
	}
	t.add(fmt.Sprintf("all %d packages", len(names)), all.median())
	return b.publish(t)
}

// initTimes parses lines like "init net/http @1.1 ms, 0.049 ms clock, …".
func initTimes(trace []byte) map[string]time.Duration {
	times := map[string]time.Duration{}
	for lines := bufio.NewScanner(bytes.NewReader(trace)); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 6 || f[0] != "init" {
			continue
		}
		if ms, err := strconv.ParseFloat(f[4], 64); err == nil {
			times[f[1]] = time.Duration(ms * float64(time.Millisecond))
		}
	}
	return times
}
