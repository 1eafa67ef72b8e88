// Command agents runs real agent programs against a scripted model, connected to cairn only by
// `cairn init`, and checks the results. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cairn/agents/model"
)

type options struct {
	cairn, base, work, only, json, recordings string
	record                                    bool
}

func main() {
	var o options
	flag.StringVar(&o.cairn, "cairn", "", "the cairn `binary` to check")
	flag.StringVar(&o.base, "base", "", "another cairn `binary`, checked for comparison")
	flag.StringVar(&o.work, "work", filepath.Join(os.TempDir(), "cairn-agents"), "the `folder` for homes, requests and payloads")
	flag.StringVar(&o.only, "only", "", "comma-separated `names` of programs, all if empty")
	flag.StringVar(&o.json, "json", "", "also write the results as JSON to this `file`")
	flag.StringVar(&o.recordings, "recordings", filepath.Join("..", "cmd", "cairn", "testdata", "agents"), "the `folder` of recordings")
	flag.BoolVar(&o.record, "record", false, "refresh the recordings")
	flag.Parse()
	r := &report{progress: os.Stderr}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx, r); err != nil {
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(125)
	}
	os.Exit(min(r.fails(), 99))
}

func (o options) run(ctx context.Context, r *report) error {
	selected, err := o.selected()
	if err != nil {
		return err
	}
	o.work, err = filepath.Abs(o.work)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.work, 0o755); err != nil {
		return err
	}
	hookproxy, err := buildHookproxy(o.work)
	if err != nil {
		return err
	}
	cache, err := cacheFolder()
	if err != nil {
		return err
	}
	cairns := [][2]string{{"new", o.cairn}}
	if o.base != "" {
		cairns = append(cairns, [2]string{"base", o.base})
	}
	for _, cairn := range cairns {
		for _, p := range selected {
			began := time.Now()
			if err := o.examine(ctx, r, cairn[0], cairn[1], cache, hookproxy, p); err != nil {
				r.add(Line{cairn[0], p.Name, "driver", Fail, err.Error()})
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, time.Since(began).Round(time.Second))
		}
	}
	for _, cairn := range cairns {
		r.writeTable(os.Stdout, cairn[0])
	}
	return o.writeJSON(r)
}

// selected returns the programs of --only.
func (o options) selected() ([]Program, error) {
	all := programs()
	if o.only == "" {
		return all, nil
	}
	var list []Program
	for name := range strings.SplitSeq(o.only, ",") {
		i := slices.IndexFunc(all, func(p Program) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown program %q", name)
		}
		list = append(list, all[i])
	}
	return list, nil
}

func (o options) examine(ctx context.Context, r *report, name, cairn, cache, hookproxy string, p Program) (err error) {
	bin, err := install(cache, p)
	if err != nil {
		return err
	}
	m, err := model.Start(filepath.Join(o.work, name, p.Name, "requests"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, err := newStand(ctx, filepath.Join(o.work, name, p.Name, "stand"), p, cairn, bin, m)
	if err != nil {
		return err
	}
	version := s.execute(commandLimit, s.environment(nil), p.Bin, "--version")
	e := &examiner{stand: s, cairnName: name, report: r}
	e.note("version", "%s; %s", strings.TrimSpace(version.Output), strings.TrimSpace(s.run("--version").Output))
	if err := e.examine(hookproxy); err != nil {
		return err
	}
	e.newFields(o.recordings)
	if o.record {
		return e.record(o.recordings, e.recorded)
	}
	return nil
}

func buildHookproxy(work string) (string, error) {
	out := filepath.Join(work, "hookproxy")
	cmd := exec.Command("go", "build", "-o", out, "cairn/agents/hookproxy")
	cmd.Stderr = os.Stderr
	return out, cmd.Run()
}

func (o options) writeJSON(r *report) error {
	if o.json == "" {
		return nil
	}
	file, err := os.Create(o.json)
	if err != nil {
		return err
	}
	return errors.Join(r.writeJSON(file), file.Close())
}
