package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"cairn/internal/observation/capture"
	"cairn/internal/project"
)

// The contract's targets for the pages.
const (
	pageLimit  = 100 * time.Millisecond // p95 on the server
	paintLimit = 300 * time.Millisecond
	pageBytes  = 150 << 10
	eventRate  = 50 // events per second while a live page is open
)

// page is a measured page, with the addresses that are requested in turn.
type page struct {
	name  string
	paths []string
}

// pages measures the pages over a large store: on the server, in Chromium, and a live page
// while events arrive.
func (b *bench) pages(ctx context.Context) (err error) {
	home, most, err := b.pagesStore(ctx, b.large)
	if err != nil {
		return err
	}
	m, err := b.startMail(ctx, home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.stop()) }()
	list, err := m.pagesOf(ctx, b, most)
	if err != nil {
		return err
	}
	if err := b.servePages(ctx, m, list); err != nil {
		return err
	}
	return b.showPages(ctx, m, list)
}

// page requests a page and returns its length.
func (m *mailServer) page(ctx context.Context, path string, into any) (size int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.origin+path, nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+m.token)
	response, err := m.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %.300s", path, response.Status, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return len(text), err
}

// pagesOf returns all pages, each with as many addresses as the store provides.
func (m *mailServer) pagesOf(ctx context.Context, b *bench, most string) ([]page, error) {
	var today struct {
		Groups []struct {
			Project  string
			Sessions []struct {
				ID string `json:"session_id"`
			}
		}
	}
	var files struct {
		Files []struct{ Project, Path string }
	}
	var mail []struct{ Slug string }
	var box struct{ Agents []struct{ Name string } }
	main := "/projects/" + url.PathEscape(b.load.Projects[0].Root)
	_, err := m.page(ctx, "/?period=30d&format=json", &today)
	if err == nil {
		_, err = m.page(ctx, "/files?period=30d&format=json", &files)
	}
	if err == nil {
		_, err = m.page(ctx, "/mail?format=json", &mail)
	}
	if err == nil {
		_, err = m.page(ctx, main+"/mail?format=json", &box)
	}
	if err != nil {
		return nil, err
	}
	if len(today.Groups) == 0 || len(files.Files) == 0 || len(mail)*len(box.Agents) == 0 {
		return nil, errors.New("the store holds no sessions, no edits or no mail of the last days")
	}
	var sessions, ofFiles, records, boxes []string
	for _, g := range today.Groups {
		for _, s := range g.Sessions {
			sessions = append(sessions, "/sessions/"+url.PathEscape(s.ID))
		}
	}
	for _, f := range files.Files[:min(len(files.Files), 20)] {
		ofFiles = append(ofFiles, "/timeline?project="+url.QueryEscape(f.Project)+"&file="+url.QueryEscape(f.Path))
	}
	file, err := b.plantFile(ctx, files.Files[0].Project, files.Files[0].Path)
	if err != nil {
		return nil, err
	}
	var events []string
	for i := range 20 {
		events = append(events, fmt.Sprintf("/rows/%d", b.large/2+97*i))
		records = append(records, fmt.Sprintf("/records/%s/R%03d", url.PathEscape(most), 1+i*b.large/10/60))
	}
	for _, p := range mail {
		at := "/projects/" + url.PathEscape(p.Slug)
		boxes = append(boxes, at+"/mail")
	}
	inbox := main + "/inbox/" + url.PathEscape(box.Agents[0].Name)
	ask := asker{b.load.Session(6_000_000, time.Now()), b.load.Words()}
	var searches []string
	for range 40 {
		searches = append(searches, "/search?q="+url.QueryEscape(ask.some(3, 60, 3000)))
	}
	project := url.QueryEscape(most)
	return []page{
		{"Today, 24 hours", []string{"/"}},
		{"Today, 30 days", []string{"/?period=30d"}},
		{"Today, one project", []string{"/?period=7d&project=" + project}},
		{"Session", sessions},
		{"Timeline", []string{"/timeline"}},
		{"Timeline, one type", []string{"/timeline?type=command_error", "/timeline?project=" + project + "&type=file_edit"}},
		{"Timeline, one file", ofFiles},
		{"Timeline, one day", []string{"/timeline?day=" + time.Now().AddDate(0, 0, -2).Format(time.DateOnly)}},
		{"Timeline, one agent", []string{"/timeline?agent=" + url.QueryEscape(box.Agents[0].Name)}},
		{"Event", events},
		{"File of 3,000 lines", []string{file, file + "&from=1000", file + "&from=2000", file + "&line=2500"}},
		{"History of a file", []string{file + "&view=history"}},
		{"Files", []string{"/files", "/files?period=30d"}},
		{"Search, three words", searches},
		{"Records, 40 % in one project", []string{"/records/" + project}},
		{"Records, open ones", []string{"/records/" + project + "?state=OPEN"}},
		{"Record", records},
		{"Records as of a tick", []string{"/records/" + project + "?at=tick%3A1000"}},
		{"Mail", []string{"/mail"}},
		{"Mail of a project", boxes},
		{"Inbox", []string{inbox}},
		{"Inbox as of a minute ago", []string{inbox + "?at=1+minute+ago"}},
		{"Thread", []string{main + "/threads/T-7"}},
		{"Message", []string{main + "/mail/1"}},
		{"Reservations", []string{"/reservations"}},
		{"Memories", []string{"/memories"}},
		{"Worth", []string{"/worth?period=30d"}},
		{"Health", []string{"/status"}},
		{"Keys", []string{"/keys"}},
	}, nil
}

// servePages measures each page on the server, with sequential requests.
func (b *bench) servePages(ctx context.Context, m *mailServer, list []page) error {
	times := 60
	if b.quick {
		times = 20
	}
	t := newTable("pages", fmt.Sprintf("pages over %s events, %s messages, %s records, %d requests of each, one after the other", grouped(b.large), grouped(b.large/10), grouped(b.large/10), times),
		"p50 ms", "p95 ms", "max ms", "CPU ms", "KB")
	for _, one := range list {
		var took sample
		largest := 0
		before, err := cpuOf(m.cmd.Process.Pid)
		if err != nil {
			return err
		}
		for i := range times {
			began := time.Now()
			size, err := m.page(ctx, one.paths[i%len(one.paths)], nil)
			if err != nil {
				return err
			}
			took, largest = append(took, time.Since(began)), max(largest, size)
		}
		after, err := cpuOf(m.cmd.Process.Pid)
		if err != nil {
			return err
		}
		p95 := took.at(0.95)
		t.add(one.name, took.median(), p95, took.at(1), (after-before)/time.Duration(times), float64(largest)/1024).
			target("p95 ≤ 100 ms, ≤ 150 KB", p95 <= pageLimit && largest <= pageBytes)
	}
	return b.publish(t)
}

// recordEvents records events of one session at a steady rate until ctx ends, and returns their
// number.
func (b *bench) recordEvents(ctx context.Context, db string, rate int) (n int, err error) {
	err = withJournal(ctx, db, func(j journal) error {
		s := b.load.Lean().Session(7_000_000, time.Now())
		for began := time.Now(); ; n++ {
			if waitUntil(ctx, began.Add(time.Duration(n)*time.Second/time.Duration(rate))) != nil {
				return nil
			}
			e, err := s.Event(s.Next())
			if err != nil {
				return err
			}
			e.At = time.Time{} // use the current time
			place, err := project.Locate(e.Cwd, "")
			if err != nil {
				return err
			}
			if _, err := capture.Record(context.WithoutCancel(ctx), j.Service, e, place, project.Process{}); err != nil {
				return err
			}
		}
	})
	return n, err
}
