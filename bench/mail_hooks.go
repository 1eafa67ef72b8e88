package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/bench/workload"
	"cairn/internal/mail/reservations"
	"cairn/internal/store"
)

// mailHooks measures the hook of an edit in three cases: the file is free, another agent has
// reserved it, or the hook must reserve it.
func (b *bench) mailHooks(ctx context.Context) error {
	home := filepath.Join(b.dir, "mail-hooks")
	if err := os.RemoveAll(home); err != nil {
		return err
	}
	root, err := b.reserved(ctx, home)
	if err != nil {
		return err
	}
	empty, err := b.plainComparison(ctx, "empty")
	if err != nil {
		return err
	}
	hook := b.hookProgram(filepath.Join(home, "cairn.db"), "--from", "claude")
	hook.dir, hook.env = root, []string{"HOME=" + home, "USERPROFILE=" + home, "CAIRN_HOME=" + home}
	off, lease := hook, hook
	off.env = append(off.env[:len(off.env):len(off.env)], "CAIRN_GUARD_MODE=off")
	lease.env = append(lease.env[:len(lease.env):len(lease.env)], "CAIRN_GUARD_AUTO_RESERVE=true")
	subjects := []*subject{
		{name: "empty Go program", program: empty}, {name: "hook of an edit, guard.mode off", program: off},
		{name: "hook of an edit, the file is free", program: hook}, {name: "hook of an edit, the file is reserved", program: hook},
		{name: "hook of an edit that reserves the file", program: lease},
	}
	silent, wrong, n := 0, 0, 0
	for range b.rounds * b.runs / 3 {
		for i, s := range subjects {
			n++
			file := fmt.Sprintf("src/free%d/f%d.go", n%100, n)
			if i == 3 {
				file = fmt.Sprintf("src/pkg%d/f%d.go", n%8, n%100) // named as in reserved
			}
			payload, err := editOf(root, file, n)
			if err != nil {
				return err
			}
			l, err := s.program.run(payload)
			if err != nil {
				return err
			}
			s.wall, s.cpu = append(s.wall, l.wall), append(s.cpu, l.cpu)
			switch asked := bytes.Contains(l.out, []byte(`"ask"`)); {
			case i == 3 && !asked:
				silent++
			case i != 3 && asked:
				wrong++
			}
		}
	}
	t := newTable("mail-hooks", "one `cairn record` before an edit, process start to exit, 10,000 active reservations of others", "p50 ms", "p99 ms", "cpu ms", "calls")
	for i, s := range subjects {
		r := t.add(s.name, s.wall.median(), s.wall.at(0.99), s.cpu.median(), len(s.wall))
		switch i {
		case 2, 3:
			r.target("≤ 5 ms", s.wall.median() <= 5*time.Millisecond)
		case 4:
			r.target("≤ 15 ms, durable", s.wall.median() <= 15*time.Millisecond)
		}
	}
	t.add("  edits of reserved files that were not asked about", nil, nil, nil, silent).target("none", silent == 0)
	if err := b.publish(t); err != nil || wrong == 0 {
		return err
	}
	return fmt.Errorf("%d edits of free files were asked about", wrong)
}

// editOf returns the payload of an edit that is about to happen, in a new session.
func editOf(root, file string, n int) ([]byte, error) {
	input, err := json.Marshal(map[string]any{"file_path": filepath.Join(root, file), "old_string": "a", "new_string": "b"})
	if err != nil {
		return nil, err
	}
	return json.Marshal(workload.HookPayload{
		Session: fmt.Sprintf("edits-%d", n%20), Cwd: root, Mode: "default", Event: "PreToolUse", Tool: "Edit", Input: input, ID: fmt.Sprint("t", n),
	})
}

// reserved creates a store in which an agent has reserved 10,000 files and patterns of a
// repository.
func (b *bench) reserved(ctx context.Context, home string) (root string, err error) {
	s, err := store.Open(ctx, store.Config{Path: filepath.Join(home, "cairn.db"), Role: store.Server})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	office, root, names, err := b.office(ctx, s, filepath.Join(home, "work"), 1)
	if err != nil {
		return "", err
	}
	for made := 0; made < 10_000; {
		var paths []string
		for ; len(paths) < 200; made++ {
			dir, n := made%100, made/100
			switch made % 10 {
			case 8:
				paths = append(paths, fmt.Sprintf("src/pkg%d/d%d/**", dir, n))
			case 9:
				paths = append(paths, fmt.Sprintf("src/pkg%d/*_%d.go", dir, n))
			default:
				paths = append(paths, fmt.Sprintf("src/pkg%d/f%d.go", dir, n))
			}
		}
		if _, err := office.FileReservationPaths(ctx, ownerOf(root), reservations.ReserveArgs{ProjectKey: root, AgentName: names[0], Paths: paths}); err != nil {
			return "", err
		}
	}
	return root, nil
}
