package web

import (
	"net/http"
	"slices"

	"cairn/internal/observation/browse"
)

const (
	maxEdits    = 500 // maximum edits that the list of files is built from
	maxFileRows = 100 // maximum files in the list
)

// filesPage lists the files that agents edited last.
type filesPage struct {
	choice
	Edits    int          `json:"edits"` // number of edits that Files is built from
	Complete bool         `json:"complete"`
	Files    []editedFile `json:"files"` // most recently edited first
	More     int          `json:"more_files,omitempty"`
}

// editedFile is a file with the agents that edited it.
type editedFile struct {
	Project  string   `json:"project"`
	Path     string   `json:"path"`
	At       int64    `json:"at"` // time of the last edit
	Edits    int      `json:"edits"`
	Branch   string   `json:"branch,omitempty"`
	Session  string   `json:"session_id"` // session of the last edit
	Agents   []string `json:"agents,omitempty"`
	Sessions []string `json:"sessions"`
}

func (p *filesPage) live() bool { return true }

// editedFiles lists the files of the newest edits.
func (s *Site) editedFiles(r *http.Request, v Visitor, _ place) (Response, error) {
	ctx, now := r.Context(), s.now().Unix()
	c, err := s.choose(r, now)
	if err != nil {
		return Response{}, err
	}
	j, err := s.cairn.Observations(ctx)
	if err != nil {
		return Response{}, err
	}
	list, err := browse.FileEdits(ctx, j, browse.FileEditsArgs{Project: c.Project, Since: c.Since, Limit: maxEdits})
	if err != nil {
		return Response{}, err
	}
	names, err := s.agents(ctx, sessionsOf(list))
	if err != nil {
		return Response{}, err
	}
	p := &filesPage{choice: c, Edits: len(list), Complete: len(list) < maxEdits, Files: groupEdits(list, names)}
	if n := len(p.Files) - maxFileRows; n > 0 {
		p.Files, p.More = p.Files[:maxFileRows], n
	}
	return s.show(r, v, "files", "Files", p)
}

// groupEdits returns one row for each file, in the order of the last edits.
func groupEdits(list []browse.FileEdit, names map[string][]string) []editedFile {
	files := []editedFile{}
	at := map[[2]string]int{}
	for _, e := range list {
		i, known := at[[2]string{e.Project, e.Path}]
		if !known {
			i = len(files)
			at[[2]string{e.Project, e.Path}] = i
			files = append(files, editedFile{Project: e.Project, Path: e.Path, At: e.At, Branch: e.Branch, Session: e.SessionID})
		}
		f := &files[i]
		f.Edits++
		if !slices.Contains(f.Sessions, e.SessionID) {
			f.Sessions = append(f.Sessions, e.SessionID)
		}
		for _, name := range names[e.SessionID] {
			if !slices.Contains(f.Agents, name) {
				f.Agents = append(f.Agents, name)
			}
		}
	}
	return files
}
