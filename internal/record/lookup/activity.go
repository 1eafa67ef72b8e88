package lookup

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"cairn/internal/record"
)

// ActivityTypes returns the types of events that the activity shows (seed, ActivityType).
func ActivityTypes() []string {
	return []string{
		record.RecordCreated, record.RecordUpdated, record.StateTransition, record.SessionStarted, record.SessionSaved, record.SessionClosed, record.SessionBranched,
		record.RecordActivation, record.ConflictDetected, record.ConflictResolved,
	}
}

const (
	// The name of a change: a version's event, or another change's type.
	typeOfChange = `c.doc ->> CASE WHEN k.text = '` + record.KindRecord + `' THEN '$.event' ELSE '$.type' END`

	selectActivity = `SELECT k.text, c.id, c.doc, ifnull(s.text, ''), c.at FROM changes c INDEXED BY changes_of_stream
CROSS JOIN symbols k ON k.id = c.kind LEFT JOIN symbols s ON s.id = c.session
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.doc IS NOT NULL AND c.seq <= ?2 AND c.at >= ?3
  AND ` + typeOfChange + ` IN (SELECT value FROM json_each(?4))
  AND (?5 IS NULL OR ?5 = CASE WHEN k.text = '` + record.KindRecord + `' THEN c.id ELSE c.doc ->> '$.record_id' END)
ORDER BY c.seq DESC LIMIT +?6`

	selectEventsOf = `SELECT '', c.id, c.doc, ifnull(s.text, ''), c.at FROM changes c INDEXED BY changes_with_doc
LEFT JOIN symbols s ON s.id = c.session WHERE c.kind = (SELECT id FROM symbols WHERE text = '` + record.KindEvent + `') AND c.id = ?2 AND c.doc IS NOT NULL
  AND c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.seq <= ?3 ORDER BY c.seq DESC`
)

// RecentActivity lists a project's events, newest first (records §2,
// get_recent_activity). Without events the list is empty.
//
// Errors: CodeInvalid for an unknown type, since and at; CodeNotFound for RecordID.
func (b *Lookup) RecentActivity(ctx context.Context, a record.ActivityArgs) (list []record.Activity, err error) {
	p := parsedActivity{}
	if p.since, err = parseSince(a.Since); err != nil {
		return nil, err
	}
	for _, t := range a.Types {
		if !slices.Contains(ActivityTypes(), t) {
			return nil, record.Invalid("types", fmt.Sprintf("%.40q is not a type of activity; valid types are %s", t, strings.Join(ActivityTypes(), ", ")))
		}
	}
	a.Limit = clamp(a.Limit, 50)
	err = b.ReadRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) error {
		if a.RecordID != "" {
			number, err := s.MustExist(ctx, a.RecordID)
			if err != nil {
				return err
			}
			p.record = record.FormatID(number)
		}
		list, err = activityOf(ctx, s, a, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// parsedActivity is the parsed form of ActivityArgs.
type parsedActivity struct {
	since  int64
	record string // "" for any
}

func activityOf(ctx context.Context, s *record.CallTx, a record.ActivityArgs, p parsedActivity) ([]record.Activity, error) {
	types := a.Types
	if len(types) == 0 {
		types = ActivityTypes()
	}
	wanted, err := record.PackList(types)
	if err != nil {
		return nil, err
	}
	var only any
	if p.record != "" {
		only = p.record
	}
	list := []record.Activity{}
	err = eachEvent(ctx, s, func(h happened) bool {
		list = append(list, h.activity())
		return true
	}, selectActivity, s.Stream, s.Until, p.since, wanted, only, a.Limit)
	return list, err
}

// happened is a change for the activity.
type happened struct {
	entry   *record.Entry // of KindRecord, else nil
	event   record.Event
	session string
	at      int64
}

// eachEvent calls fn with the changes that a query of this file selects; fn returns false
// to stop.
func eachEvent(ctx context.Context, s *record.CallTx, fn func(h happened) bool, query string, args ...any) error {
	return record.Enough(s.Log.Each(ctx, func(rows *sql.Rows) error {
		var kind, id, doc string
		var h happened
		err := rows.Scan(&kind, &id, &doc, &h.session, &h.at)
		switch {
		case err != nil:
		case kind == record.KindRecord:
			h.entry, err = record.DecodeEntry([]byte(doc))
		default:
			err = json.Unmarshal([]byte(doc), &h.event)
		}
		if err == nil && !fn(h) {
			err = record.ErrEnough
		}
		return err
	}, query, args...))
}

func (h *happened) activity() record.Activity {
	a := record.Activity{Timestamp: record.Time(h.at), SessionID: h.session}
	if e := h.entry; e != nil {
		a.Type, a.RecordID, a.Summary = e.Event, e.ID, entrySummary(e)
		a.Details = map[string]any{"version": e.Version, "tick": e.Tick}
		if e.Event == record.StateTransition {
			a.Details["from"], a.Details["to"] = e.FromState, e.State
			if e.Reason != "" {
				a.Details["reason"] = e.Reason
			}
			if e.ResolvedBy != "" {
				a.Details["resolved_by"] = e.ResolvedBy
			}
		}
		return a
	}
	e := &h.event
	a.Type, a.RecordID, a.Summary = e.Type, e.RecordID, eventSummary(e, h.session)
	a.Details = map[string]any{}
	AddIDs(a.Details, "sessions", e.Holders)
	AddIDs(a.Details, "records", e.Records)
	if e.Parent != "" {
		a.Details["parent_session"] = e.Parent
	}
	if e.Tick != 0 {
		a.Details["tick"] = e.Tick
	}
	if len(a.Details) == 0 {
		a.Details = nil
	}
	return a
}

// eventSummary describes in one line what happened to a session. In the log, starts have no
// summary, nor have saves and closes without one from the caller.
func eventSummary(e *record.Event, session string) string {
	switch {
	case e.Summary != "":
		return e.Summary
	case e.Type == record.SessionStarted:
		return "session " + session + " started"
	case e.Type == record.SessionSaved:
		return "session " + session + " saved " + recordList(e.Records)
	case e.Type == record.SessionClosed && len(e.Records) > 0:
		return "session " + session + " closed, with " + recordList(e.Records) + " active"
	case e.Type == record.SessionClosed:
		return "session " + session + " closed"
	case e.RecordID != "":
		return strings.ReplaceAll(e.Type, "_", " ") + " of " + e.RecordID
	}
	return strings.ReplaceAll(e.Type, "_", " ") + " in session " + session
}

// recordList returns the first records of a list and the number of the others.
func recordList(ids []string) string {
	const most = 5
	switch {
	case len(ids) == 0:
		return "no records"
	case len(ids) > most:
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
	}
	return strings.Join(ids, ", ")
}

// maxDetailIDs is the maximum number of ids in a detail. Sessions that are never closed
// add up, and every reader would pay for them.
const maxDetailIDs = 20

// AddIDs adds ids to details. If there are too many, it adds the first of them and the
// total; without ids it adds nothing.
func AddIDs(details map[string]any, name string, ids []string) {
	if len(ids) == 0 {
		return
	}
	details[name] = ids[:min(len(ids), maxDetailIDs)]
	if len(ids) > maxDetailIDs {
		details[name+"_total"] = len(ids)
	}
}

const selectHolders = `SELECT s.id, r.last_activity FROM activations a
JOIN sessions s ON s.key = a.session_key
JOIN record_sessions r ON r.project_key = a.project_key AND r.session_key = a.session_key
WHERE a.project_key = ?1 AND a.number = ?2 AND r.closed = 0 ORDER BY r.last_activity DESC, a.session_key DESC`

// ActiveSessions lists the sessions that have a record active, last active first. Without
// sessions the list is empty.
//
// Errors: CodeNotFound, CodeInvalid for at.
func (b *Lookup) ActiveSessions(ctx context.Context, a record.ActiveSessionsArgs) (list []record.ActiveSession, err error) {
	err = b.Read(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) error {
		number, err := s.MustExist(ctx, a.RecordID)
		if err != nil {
			return err
		}
		own, err := record.SessionID(ctx, s.Log, a.Caller)
		if err != nil {
			return err
		}
		list, err = Holders(ctx, s, number, own)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Holders returns the open sessions that have a record active.
func Holders(ctx context.Context, s *record.CallTx, number int64, own string) ([]record.ActiveSession, error) {
	list := []record.ActiveSession{}
	err := s.Tx.Each(ctx, func(rows *sql.Rows) error {
		var h record.ActiveSession
		err := rows.Scan(&h.SessionID, &h.LastActivity)
		h.IsCurrent = h.SessionID == own
		list = append(list, h)
		return err
	}, selectHolders, s.Project.Key, number)
	return list, err
}

// parseSince returns the first nanosecond that a time includes; "" includes all.
func parseSince(text string) (int64, error) {
	if text == "" {
		return math.MinInt64, nil
	}
	at, ok := record.ParseTime(text)
	if !ok {
		return 0, record.Invalid("since", fmt.Sprintf("since must be an RFC 3339 time, not %.40q", text))
	}
	return at, nil
}

// maxLimit is the largest number of rows that a call returns (records §1).
const maxLimit = 500

// clamp limits a number to 1 to 500; 0 means usual.
func clamp(limit, usual int) int {
	if limit == 0 {
		limit = usual
	}
	return min(max(limit, 1), maxLimit)
}
