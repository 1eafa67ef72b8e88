package origin

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"

	"cairn/internal/observation"
	"cairn/internal/project"
	"cairn/internal/store"
)

// Origin is a row that edited a file or created a commit, with its prompt and session. Times
// are Unix seconds.
type Origin struct {
	ObservationID int64
	Timestamp     int64
	ObsType       string
	Project       string
	SessionID     string
	Harness       string // "" if no harness reported the session
	StartedAt     int64
	Digest        json.RawMessage // the session's Digest as JSON; nil if it has none yet
	Prompt        *OriginPrompt   // nil if no user prompt belongs to the row
}

// OriginPrompt is the user prompt that caused a row.
type OriginPrompt struct {
	ID        int64  `json:"id"` // id of the observation that stores the prompt
	Timestamp int64  `json:"timestamp"`
	Content   string `json:"content"`
}

const (
	originColumns = `o.id, o.timestamp, o.obs_type, p.id, s.id, ifnull(s.harness, ''), s.started_at, s.summary,
pr.id, pr.timestamp, pr.content`

	originJoins = `JOIN sessions s ON s.key = o.session_key
JOIN projects p ON p.key = o.project_key
LEFT JOIN observation_rows pr ON pr.prompt_id = o.prompt_id AND pr.obs_type = 'user_prompt' `

	// Git prints abbreviated hashes. CROSS JOIN makes SQLite search by type within each project,
	// which an index covers.
	selectCommitOrigins = `SELECT h.value, ` + originColumns + `
FROM projects q CROSS JOIN observation_rows o
    ON o.project_key = q.key AND o.obs_type IN ('git_commit', 'git_push', 'github')
JOIN json_each(?1) h ON substr(h.value, 1, length(o.metadata ->> '$.commit_hash')) = o.metadata ->> '$.commit_hash'
` + originJoins + `WHERE length(o.metadata ->> '$.commit_hash') >= 7 ORDER BY o.timestamp, o.id`

	selectEditOrigins = `SELECT '', ` + originColumns + `
FROM observation_rows o ` + originJoins + `
WHERE o.project_key = ?1 AND o.path_key = ?2 AND o.obs_type IN ('file_write', 'file_edit')
  AND (?3 IS NULL OR o.timestamp > ?3) AND (?4 IS NULL OR o.timestamp <= ?4)
  AND o.metadata ->> '$.failed' IS NULL AND o.metadata ->> '$.interrupted' IS NULL
  AND (NOT ?6 OR NOT EXISTS (SELECT 1 FROM observation_lines l WHERE l.observation_id = o.id AND length(l.lines) >= 5
    AND hex(substr(l.lines, 1, 1)) NOT IN ('02', '03', '06', '07') AND (hex(substr(l.lines, 1, 1)) <> '04' OR length(l.lines) > 5)))
ORDER BY o.timestamp DESC, o.id DESC LIMIT +?5`

	// Rows that may have created a commit without printing its hash, or with another hash before
	// it was rewritten; see CommitMaker.
	selectCommitsNear = `SELECT '', ` + originColumns + `,
o.metadata ->> '$.commit_hash', o.metadata ->> '$.commit_message', o.content, o.metadata ->> '$.duration_ms'
FROM projects q CROSS JOIN observation_rows o
    ON o.project_key = q.key AND o.obs_type IN ('git_commit', 'git_push', 'github')
` + originJoins + `WHERE q.id = ?1 AND o.timestamp BETWEEN ?2 AND ?3 ORDER BY o.timestamp, o.id`

	// The end of the hash range of a push is the newest pushed commit.
	selectPushes = `SELECT '', ` + originColumns + `
FROM projects q CROSS JOIN observation_rows o ON o.project_key = q.key AND o.obs_type = 'git_push'
` + originJoins + `WHERE q.id = ?1 AND o.timestamp >= ?3 AND instr(o.metadata ->> '$.hash_range', '..') > 0
  AND length(o.metadata ->> '$.hash_range') >= 16
  AND substr(?2, 1, length(ltrim(substr(o.metadata ->> '$.hash_range', instr(o.metadata ->> '$.hash_range', '..')), '.')))
    = ltrim(substr(o.metadata ->> '$.hash_range', instr(o.metadata ->> '$.hash_range', '..')), '.')
ORDER BY o.timestamp, o.id LIMIT 1`
)

// CommitOrigins returns, by whole commit hash, the rows that created the commits. For each hash
// it returns the first row, preferring rows of cwd's project. Hashes that no session is known
// to have created are absent (contract records §4.2).
func CommitOrigins(ctx context.Context, svc *observation.Service, cwd string, hashes []string) (map[string]Origin, error) {
	out := map[string]Origin{}
	list, err := json.Marshal(hashes)
	if err != nil || len(hashes) == 0 {
		return out, err
	}
	place, err := project.Locate(cwd, svc.Config.Home)
	if err != nil {
		return out, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		own, _, err := project.Current(ctx, tx, place)
		if err != nil {
			return err
		}
		return tx.Each(ctx, func(r *sql.Rows) error {
			hash, o, err := scanOrigin(r)
			if first, known := out[hash]; !known || first.Project != own.ID && o.Project == own.ID {
				out[hash] = o
			}
			return err
		}, selectCommitOrigins, string(list))
	})
	return out, err
}

// EditsArgs are the arguments of EditOrigins.
type EditsArgs struct {
	Files []string // names of one file, likeliest first: absolute, or relative to Cwd or its repository's root
	Cwd   string
	After *int64 // Unix seconds, exclusive; nil for no bound
	Until *int64 // Unix seconds, inclusive; nil for no bound
	Limit int    // maximum number of rows, clamped to 1–200

	UnknownText bool // only rows whose written lines are not all known
}

// EditOrigins returns the rows that wrote or edited a file, newest first. Failed and
// interrupted calls do not count. The rows are those of the first name in Files that has any.
// The file's own project is searched before other projects, whose sessions may have edited the
// file too. Equal paths in other repositories do not count.
func EditOrigins(ctx context.Context, svc *observation.Service, a EditsArgs) (out []Origin, err error) {
	place, err := project.Locate(a.Cwd, svc.Config.Home)
	if err != nil {
		return nil, err
	}
	err = svc.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		var tried []observation.FileKey
		for _, name := range a.Files {
			keys, err := observation.FileKeys(ctx, tx, place, name, svc.Config.Home)
			if err != nil {
				return err
			}
			for _, k := range keys {
				if slices.Contains(tried, k) {
					continue
				}
				tried = append(tried, k)
				err := tx.Each(ctx, func(r *sql.Rows) error {
					_, o, err := scanOrigin(r)
					out = append(out, o)
					return err
				}, selectEditOrigins, k.Project, k.Path, a.After, a.Until, min(max(a.Limit, 1), 200), a.UnknownText)
				if err != nil || len(out) > 0 {
					return err
				}
			}
		}
		return nil
	})
	return out, err
}

func scanOrigin(r *sql.Rows, more ...any) (hash string, o Origin, err error) {
	var digest, asked sql.NullString
	var prompt, at sql.NullInt64
	err = r.Scan(append([]any{
		&hash, &o.ObservationID, &o.Timestamp, &o.ObsType, &o.Project, &o.SessionID, &o.Harness, &o.StartedAt,
		&digest, &prompt, &at, &asked,
	}, more...)...)
	if digest.Valid {
		o.Digest = json.RawMessage(digest.String)
	}
	if prompt.Valid {
		o.Prompt = &OriginPrompt{prompt.Int64, at.Int64, asked.String}
	}
	return hash, o, err
}
