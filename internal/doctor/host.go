package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"cairn/internal/fault"
	"cairn/internal/harness"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation/browse"
	"cairn/internal/observation/capture"
	"cairn/internal/regular"
	"cairn/internal/repair"
	"cairn/internal/wiring"
)

// host checks the harnesses: whether they are connected, whether that works, and which
// transcripts they will delete soon.
func (d *doctorRun) host(ctx context.Context) {
	if d.args.Place.Home == "" {
		d.add("harnesses", Unknown, "the home directory is unknown", "it contains the agents' settings", "set HOME")
		return
	}
	d.Harness = wiring.Inspect(d.args.Place)
	live := map[string]int64{}
	var err error
	if !d.storeUnreadable {
		live, err = browse.LastLive(ctx, d.journal)
	}
	wired, found := 0, 0
	for i := range d.Harness {
		r := &d.Harness[i]
		if !r.Found && !r.Wired {
			continue
		}
		found++
		d.entries(r)
		if !r.Wired {
			continue
		}
		wired++
		if err != nil || d.storeUnreadable {
			d.add(r.Harness+".events", Unknown, "the store cannot be read", "only the last event proves that the hooks were loaded", "")
			continue
		}
		d.events(r.Harness, live[r.Harness])
	}
	if found == 0 {
		d.add("harnesses", Unknown, "no agent was found in "+d.args.Place.Home, "nothing is recorded", "install one, then run `cairn init`")
	} else if wired == 0 {
		d.add("harnesses", Problem, "no agent is connected", "nothing is recorded", "run `cairn init`")
	}
	d.checkServer(ctx)
	for _, h := range harnesses.All() {
		if h.KeptDays > 0 {
			d.transcripts(ctx, h)
		}
	}
}

// entries reports on the settings of one harness.
func (d *doctorRun) entries(r *wiring.Report) {
	name := r.Harness + ".entries"
	title := wiring.Title(r.Harness)
	again := "run `cairn init --" + r.Harness + "`"
	var broken, stale, units []string
	for _, f := range r.Files {
		if f.Error != "" {
			broken = append(broken, f.Path+": "+f.Error)
		}
	}
	for _, e := range r.Entries {
		if e.State != wiring.Present {
			stale = append(stale, strings.TrimSpace(fmt.Sprintf("%s is %s %s", e.Name, e.State, e.Why)))
		}
		if e.WrongUnit {
			units = append(units, e.Name)
		}
	}
	switch {
	case len(broken) > 0:
		d.add(name, Problem, title+": "+repair.Summary(broken), "its hooks may not be loaded", "correct the file, then "+again)
	case !r.Wired:
		d.add(name, Unknown, title+" is installed but not connected", "none of its sessions are recorded", again)
	case len(stale) > 0:
		d.add(name, Problem, title+": "+repair.Summary(stale), "some events are not recorded", again)
	default:
		d.add(name, OK, title+" is connected", "", "")
	}
	if n := len(r.Untrusted); n > 0 {
		d.add(r.Harness+".trust", Problem, fmt.Sprintf("%s does not trust %d of the hooks of cairn: %s", title, n, strings.Join(r.Untrusted, ", ")),
			"it runs new and changed hooks only after you trust them, and nothing is recorded until then",
			"start "+title+" and trust them when it asks, or open /hooks there")
	}
	if len(units) > 0 {
		d.add(r.Harness+".timeouts", Problem, title+": the timeout of "+strings.Join(units, ", ")+" has the unit of another host",
			"the host ends hooks too early or waits too long for them", again)
	}
	switch double := strings.Join(r.Double, "; "); {
	case double == "":
	case r.Perhaps:
		d.add(r.Harness+".double", Unknown, double, "then each event is recorded twice", "keep that setting of "+title+" off")
	default:
		d.add(r.Harness+".double", Problem, title+": "+double, "each event arrives twice", again)
	}
	for _, b := range r.Binaries {
		if !b.Exists {
			d.add(r.Harness+".program", Problem, title+" calls "+b.Path+", which does not exist", "every hook fails", again)
		}
	}
}

// events reports the time of a harness's last event.
func (d *doctorRun) events(harness string, at int64) {
	name, title := harness+".events", wiring.Title(harness)
	if at == 0 {
		d.add(name, Unknown, "no event of "+title+" was recorded yet", "the host loads hooks when it starts, and may ask you to trust them",
			"start a new session in it and run doctor again")
		return
	}
	d.add(name, OK, fmt.Sprintf("last event of %s %s", title, time.Unix(at, 0).UTC().Format(time.RFC3339)), "", "")
}

// checkServer lists the tools of each connected program, or of this one.
func (d *doctorRun) checkServer(ctx context.Context) {
	programs := map[string]bool{}
	for _, r := range d.Harness {
		for _, b := range r.Binaries {
			if b.Exists && b.Hook && d.args.Program != "" && b.Path != d.args.Program {
				d.sameVersion(ctx, b.Path)
			} else if b.Exists {
				programs[b.Path] = true
			}
		}
	}
	if len(programs) == 0 && d.args.Program != "" {
		programs[d.args.Program] = true
	}
	for program := range programs {
		d.args.Progress("asking " + program + " for its tools")
		n, err := askTools(ctx, program)
		if err != nil {
			d.add("serve", Problem, program+" serve: "+err.Error(), "agents cannot use cairn's tools",
				"run `"+program+" serve` to see its messages; `cairn init` connects another program")
			continue
		}
		d.add("serve", OK, fmt.Sprintf("%s serve offers %d tools", program, n), "", "")
	}
}

// sameVersion reports a hook program of another version.
func (d *doctorRun) sameVersion(ctx context.Context, program string) {
	ours, err := wiring.VersionLine(ctx, d.args.Program)
	if err != nil {
		return // checkServer reports why it does not start
	}
	theirs, err := wiring.VersionLine(ctx, program)
	_, ours, _ = strings.Cut(ours, " ")
	_, version, _ := strings.Cut(theirs, " ")
	switch {
	case err != nil:
		d.add("hook", Problem, program+" does not start: "+err.Error(), "hooks call it, so nothing is recorded", "reinstall it, then run `cairn init`")
	case version != ours:
		d.add("hook", Problem, fmt.Sprintf("hooks call %s, which is %s; this is cairn %s", program, theirs, ours),
			"an older program may not be able to open the store", "install both from one release, then run `cairn init`")
	}
}

// answerTime is the time limit of a server for listing its tools.
const answerTime = 10 * time.Second

// askTools starts a program as an MCP server without the user's data, and counts its tools.
func askTools(ctx context.Context, program string) (tools int, err error) {
	dir, err := os.MkdirTemp("", "cairn-doctor-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "serve")
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "CAIRN_HOME="+dir, "CAIRN_DB=", "CAIRN_PROJECT=")
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cairn doctor","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("no answer within %v", answerTime)
	}
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return 0, fmt.Errorf("%w %.200s", err, first)
	}
	for line := range bytes.Lines(out) {
		var answer struct {
			ID     int `json:"id"`
			Result struct {
				Tools []json.RawMessage `json:"tools"`
			} `json:"result"`
		}
		if json.Unmarshal(line, &answer) == nil && answer.ID == 2 && len(answer.Result.Tools) > 0 {
			return len(answer.Result.Tools), nil
		}
	}
	return 0, errors.New("it listed no tools")
}

// transcripts checks for sessions that are not imported and that a harness will delete.
func (d *doctorRun) transcripts(ctx context.Context, h harness.Harness) {
	place := harness.Homes{User: d.args.Place.Home, Getenv: d.args.Place.Getenv}
	var files []string
	for _, root := range h.Transcripts(place) {
		found, err := harnesses.TranscriptFiles(ctx, root)
		if fault.HasCode(err, "no_transcripts") {
			continue
		}
		if err == nil && d.storeUnreadable {
			err = errors.New("the store cannot be read")
		}
		if err != nil {
			d.unknown("transcripts", err)
			return
		}
		files = append(files, found...)
	}
	if files == nil {
		return
	}
	known, err := browse.SessionIDs(ctx, d.journal)
	if err != nil {
		d.unknown("transcripts", err)
		return
	}
	missing, oldest := d.missing(ctx, files, known)
	if missing == 0 {
		d.add("transcripts", OK, fmt.Sprintf("all %d transcripts of %s are known", len(files), h.Title), "", "")
		return
	}
	kept := keptFor(h, place)
	days := math.Ceil(oldest.Add(kept).Sub(d.subject.Clock()).Hours() / 24)
	d.add("transcripts", Problem, fmt.Sprintf("%d sessions of %s are not imported; the oldest is deleted in %.0f days", missing, h.Title, max(0, days)),
		fmt.Sprintf("%s deletes transcripts %.0f days after their last line", h.Title, kept.Hours()/24), "run `cairn import`")
}

// missing counts the transcripts of sessions that are neither recorded nor imported. oldest
// is the time of the last write to the oldest of them.
func (d *doctorRun) missing(ctx context.Context, files []string, known map[string]bool) (n int, oldest time.Time) {
	for _, path := range files {
		session := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		info, err := os.Stat(path)
		if err != nil || known[session] || strings.HasPrefix(session, "agent-") {
			continue
		}
		if f, ok, err := capture.FindImportedFile(ctx, d.journal, path); err == nil && ok && f.Size >= info.Size() {
			continue
		}
		n++
		if oldest.IsZero() || info.ModTime().Before(oldest) {
			oldest = info.ModTime()
		}
	}
	return n, oldest
}

// keptFor returns how long a harness keeps transcripts, by its settings.
func keptFor(h harness.Harness, place harness.Homes) time.Duration {
	days := float64(h.KeptDays)
	var settings map[string]any
	text, err := regular.Read(h.Files(place)[0].Path, regular.MaxForeign)
	if err == nil && json.Unmarshal(text, &settings) == nil {
		if set, ok := settings[h.KeptSetting].(float64); ok && set >= 0 {
			days = set
		}
	}
	return time.Duration(days * 24 * float64(time.Hour))
}
