package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cairn"
	"cairn/bench/workload"
	"cairn/internal/harness/harnesses"
)

// replay sends the sessions of transcripts through the hook, one process per call. Then it
// imports copies of the transcripts. Their lines have the times of the calls, as if the harness
// had written them meanwhile. All rows are already stored, so the import should add none.
func (b *bench) replay(ctx context.Context) error {
	dir := filepath.Join(b.dir, "replay")
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Join(dir, "transcripts"), 0o700)); err != nil {
		return err
	}
	r := &replaying{
		live: filepath.Join(dir, "live", "cairn.db"), copies: filepath.Join(dir, "transcripts"),
		moments: map[string]time.Time{},
	}
	hook := &subject{name: "the hook", program: b.hookProgram(r.live, "--from", "claude")}
	r.call = func(payload []byte) { hook.call(payload) }
	var files []string
	for _, path := range b.files {
		found, err := harnesses.TranscriptFiles(ctx, path)
		if err != nil {
			return err
		}
		files = append(files, found...)
	}
	for i, path := range files {
		if err := r.file(ctx, path, i); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if i%10 == 9 {
			b.say("  %d of %d transcripts, %s calls", i+1, len(files), grouped(len(hook.wall)))
		}
	}
	if len(hook.wall) == 0 {
		return errors.New("the transcripts hold nothing that a hook would report")
	}
	t := newTable("replay", fmt.Sprintf("%d transcripts, %s hook calls: p50 %.1f ms, p95 %.1f ms; %d failed",
		len(files), grouped(len(hook.wall)), milliseconds(hook.wall.median()), milliseconds(hook.wall.at(0.95)), len(hook.failed)), "")
	for _, err := range hook.failed[:min(len(hook.failed), 5)] {
		t.note("%v", err)
	}
	if err := r.compare(ctx, t, dir); err != nil {
		return err
	}
	return b.publish(t)
}

// replaying is the state of a replay.
type replaying struct {
	live   string // path of the store that the hook writes to
	copies string // folder of the dated copies
	call   func(payload []byte)

	// moments maps line ids to the times at which the lines were written. A resumed session
	// repeats lines of the previous one, which no harness reports again.
	moments map[string]time.Time
}

// file replays one transcript and writes its copy.
func (r *replaying) file(ctx context.Context, path string, n int) (err error) {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	folder := filepath.Join(r.copies, fmt.Sprintf("%03d", n))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(folder, filepath.Base(path)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	t := newTranslator(agentOf(path))
	for lines := bufio.NewReader(in); ctx.Err() == nil; {
		line, err := lines.ReadBytes('\n')
		if _, werr := out.Write(r.line(t, line)); werr != nil {
			return werr
		}
		if errors.Is(err, io.EOF) {
			return r.send(t.end())
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// agentOf returns the agent of a transcript, derived from the file's name.
func agentOf(path string) string {
	name, ok := strings.CutPrefix(strings.TrimSuffix(filepath.Base(path), ".jsonl"), "agent-")
	if !ok {
		return ""
	}
	return name
}

// line makes the hook calls of a line and returns the line with the time of the calls. A line
// that cannot be parsed is returned unchanged.
func (r *replaying) line(t *translator, text []byte) []byte {
	var l transcriptLine
	if json.Unmarshal(text, &l) != nil {
		return text
	}
	moment, repeated := r.moments[l.ID]
	if !repeated || l.ID == "" {
		moment = time.Now()
		if err := r.send(t.line(l)); err != nil {
			return text
		}
		if l.ID != "" {
			r.moments[l.ID] = moment
		}
	} else {
		t.repeat(l)
	}
	if l.Timestamp == "" {
		return text
	}
	dated := moment.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	return bytes.ReplaceAll(text, []byte(`"`+l.Timestamp+`"`), []byte(`"`+dated+`"`))
}

func (r *replaying) send(payloads []workload.HookPayload) error {
	for _, p := range payloads {
		text, err := json.Marshal(p)
		if err != nil {
			return err
		}
		r.call(text)
	}
	return nil
}

// importInto imports the dated copies into the store at db.
func (r *replaying) importInto(ctx context.Context, db string) (cairn.ImportReport, error) {
	c, err := cairn.Open(cairn.Config{Home: filepath.Dir(db), Dir: filepath.Dir(db), DB: db})
	if err != nil {
		return cairn.ImportReport{}, err
	}
	report, err := c.Import(ctx, cairn.ImportArgs{Paths: []string{r.copies}})
	return report, errors.Join(err, c.Close())
}
