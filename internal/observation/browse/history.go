package browse

import (
	"context"
	"database/sql"
	"slices"

	"cairn/internal/observation"
	"cairn/internal/oneline"
	"cairn/internal/project"
	"cairn/internal/store"
)

// History contains the rows of a file, grouped by session (seed, file_history).
type History struct {
	FilePath string           `json:"file_path"`
	Sessions []HistorySession `json:"sessions"` // by their latest touch, newest first
}

// HistorySession is one session that touched the file.
type HistorySession struct {
	SessionID     string      `json:"session_id"`
	Project       string      `json:"project"`
	StartedAt     int64       `json:"started_at"`
	SummaryIntent *string     `json:"summary_intent"`
	Touches       []FileTouch `json:"touches"` // chronological
}

// FileTouch is one row about the file. Failed and interrupted calls did not touch the file, but
// are listed too, except with EditsOnly.
type FileTouch struct {
	ObservationID  int64   `json:"observation_id"`
	Timestamp      int64   `json:"timestamp"`
	ObsType        string  `json:"obs_type"`
	ContentPreview string  `json:"content_preview"`
	PromptContent  *string `json:"prompt_content"` // only if the prompt is a user's
	IsPinned       bool    `json:"is_pinned"`
	Failed         bool    `json:"failed,omitempty"`      // the file was not touched
	Interrupted    bool    `json:"interrupted,omitempty"` // the user interrupted the call; the file was not touched
	Error          string  `json:"error,omitempty"`       // for a failed call: the line with the reason, at most 200 characters
}

// HistoryArgs are the arguments of FileHistory.
type HistoryArgs struct {
	File      string // absolute, or relative to Cwd or its repository's root
	Cwd       string
	Before    *int64 // Unix seconds, exclusive; nil for no bound
	After     *int64
	Limit     int  // maximum number of touches, newest first, clamped to 1–50
	EditsOnly bool // only the last successful write or edit of each session
}

const selectTouches = `SELECT o.id, o.timestamp, o.obs_type, substr(o.content, 1, 120), o.is_pinned,
s.id, p.id, s.started_at, s.summary ->> '$.intent', pr.content,
o.metadata ->> '$.failed' IS NOT NULL, o.metadata ->> '$.interrupted' IS NOT NULL, ifnull(o.metadata ->> '$.error', '')
FROM observation_rows o
JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key
LEFT JOIN observation_rows pr ON pr.prompt_id = o.prompt_id AND pr.obs_type = 'user_prompt'
WHERE o.project_key = ?1 AND o.path_key = ?2
  AND (?3 IS NULL OR o.timestamp < ?3) AND (?4 IS NULL OR o.timestamp > ?4)
  AND (NOT ?5 OR o.obs_type IN ('file_write', 'file_edit')
    AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL AND NOT EXISTS (
      SELECT 1 FROM observation_rows l
      WHERE l.project_key = o.project_key AND l.path_key = o.path_key AND l.session_key = o.session_key
        AND l.obs_type IN ('file_write', 'file_edit') AND (l.timestamp, l.id) > (o.timestamp, o.id)
        AND l.metadata ->> '$.failed' IS NULL AND l.metadata ->> '$.interrupted' IS NULL
        AND (?3 IS NULL OR l.timestamp < ?3)))
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?6`

// FileHistory returns the newest touches of a file, grouped by session. Files are compared by
// key, so every spelling and worktree finds the file. An unknown file has no sessions
// (observations §8.6).
func FileHistory(ctx context.Context, svc *observation.Service, a HistoryArgs) (History, error) {
	h := History{FilePath: a.File, Sessions: []HistorySession{}}
	place, err := project.Locate(a.Cwd, svc.Config.Home)
	if err != nil {
		return h, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		files, err := observation.FileKeys(ctx, tx, place, a.File, svc.Config.Home)
		if err != nil {
			return err
		}
		for _, f := range files {
			if err := h.read(ctx, tx, f, a); err != nil {
				return err
			}
			if len(h.Sessions) > 0 {
				break
			}
		}
		return nil
	})
	for i := range h.Sessions {
		slices.Reverse(h.Sessions[i].Touches)
	}
	return h, err
}

// read adds a file's touches, newest first.
func (h *History) read(ctx context.Context, tx *store.Tx, f observation.FileKey, a HistoryArgs) error {
	return tx.Each(ctx, func(r *sql.Rows) error {
		var t FileTouch
		var s HistorySession
		var said string
		err := r.Scan(&t.ObservationID, &t.Timestamp, &t.ObsType, &t.ContentPreview, &t.IsPinned,
			&s.SessionID, &s.Project, &s.StartedAt, &s.SummaryIntent, &t.PromptContent, &t.Failed, &t.Interrupted, &said)
		if t.Failed = t.Failed && !t.Interrupted; t.Failed {
			t.Error = oneline.Cut(observation.Reason("", said), maxReason)
		}
		i := slices.IndexFunc(h.Sessions, func(o HistorySession) bool { return o.SessionID == s.SessionID })
		if i < 0 {
			i = len(h.Sessions)
			h.Sessions = append(h.Sessions, s)
		}
		h.Sessions[i].Touches = append(h.Sessions[i].Touches, t)
		return err
	}, selectTouches, f.Project, f.Path, a.Before, a.After, a.EditsOnly, min(max(a.Limit, 1), 50))
}
