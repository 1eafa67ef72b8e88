package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ActivityTypes returns the types of events that the activity shows (seed, ActivityType).
func ActivityTypes() []string {
	return []string{
		RecordCreated, RecordUpdated, StateTransition, SessionStarted, SessionSaved, SessionClosed, SessionBranched,
		RecordActivation, ConflictDetected, ConflictResolved,
	}
}

const (
	// The name of a change: a version's event, or another change's type.
	typeOfChange = `c.doc ->> CASE WHEN k.text = '` + KindRecord + `' THEN '$.event' ELSE '$.type' END`

	selectActivity = `SELECT k.text, c.id, c.doc, ifnull(s.text, ''), c.at FROM changes c INDEXED BY changes_of_stream
CROSS JOIN symbols k ON k.id = c.kind LEFT JOIN symbols s ON s.id = c.session
WHERE c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.doc IS NOT NULL AND c.seq <= ?2 AND c.at >= ?3
  AND ` + typeOfChange + ` IN (SELECT value FROM json_each(?4))
  AND (?5 IS NULL OR ?5 = CASE WHEN k.text = '` + KindRecord + `' THEN c.id ELSE c.doc ->> '$.record_id' END)
ORDER BY c.seq DESC LIMIT +?6`

	selectEventsOf = `SELECT '', c.id, c.doc, ifnull(s.text, ''), c.at FROM changes c INDEXED BY changes_with_doc
LEFT JOIN symbols s ON s.id = c.session WHERE c.kind = (SELECT id FROM symbols WHERE text = '` + KindEvent + `') AND c.id = ?2 AND c.doc IS NOT NULL
  AND c.stream = (SELECT id FROM symbols WHERE text = ?1) AND c.seq <= ?3 ORDER BY c.seq DESC`
)

// RecentActivity lists a project's events, newest first (records §2,
// get_recent_activity). Without events the list is empty.
//
// Errors: CodeInvalid for an unknown type, since and at; CodeNotFound for RecordID.
func (b *Service) RecentActivity(ctx context.Context, a ActivityArgs) (list []Activity, err error) {
	p := parsedActivity{}
	if p.since, err = parseSince(a.Since); err != nil {
		return nil, err
	}
	for _, t := range a.Types {
		if !slices.Contains(ActivityTypes(), t) {
			return nil, invalid("types", fmt.Sprintf("%.40q is not a type of activity; valid types are %s", t, strings.Join(ActivityTypes(), ", ")))
		}
	}
	a.Limit = clamp(a.Limit, 50)
	err = b.readRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) error {
		if a.RecordID != "" {
			number, err := s.mustExist(ctx, a.RecordID)
			if err != nil {
				return err
			}
			p.record = formatID(number)
		}
		list, err = s.activity(ctx, a, p)
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

func (s *callTx) activity(ctx context.Context, a ActivityArgs, p parsedActivity) ([]Activity, error) {
	types := a.Types
	if len(types) == 0 {
		types = ActivityTypes()
	}
	wanted, err := pack(types)
	if err != nil {
		return nil, err
	}
	var record any
	if p.record != "" {
		record = p.record
	}
	list := []Activity{}
	err = s.eachEvent(ctx, func(h happened) bool {
		list = append(list, h.activity())
		return true
	}, selectActivity, s.stream, s.until, p.since, wanted, record, a.Limit)
	return list, err
}

// happened is a change for the activity.
type happened struct {
	entry   *Entry // of KindRecord, else nil
	event   Event
	session string
	at      int64
}

// eachEvent calls fn with the changes that a query of this file selects; fn returns false
// to stop.
func (s *callTx) eachEvent(ctx context.Context, fn func(h happened) bool, query string, args ...any) error {
	return enough(s.log.Each(ctx, func(rows *sql.Rows) error {
		var kind, id, doc string
		var h happened
		err := rows.Scan(&kind, &id, &doc, &h.session, &h.at)
		switch {
		case err != nil:
		case kind == KindRecord:
			h.entry, err = decodeEntry([]byte(doc))
		default:
			err = json.Unmarshal([]byte(doc), &h.event)
		}
		if err == nil && !fn(h) {
			err = errEnough
		}
		return err
	}, query, args...))
}

func (h *happened) activity() Activity {
	a := Activity{Timestamp: Time(h.at), SessionID: h.session}
	if e := h.entry; e != nil {
		a.Type, a.RecordID, a.Summary = e.Event, e.ID, e.summary()
		a.Details = map[string]any{"version": e.Version, "tick": e.Tick}
		if e.Event == StateTransition {
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
	a.Type, a.RecordID, a.Summary = e.Type, e.RecordID, e.summary(h.session)
	a.Details = map[string]any{}
	addIDs(a.Details, "sessions", e.Holders)
	addIDs(a.Details, "records", e.Records)
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

// summary describes in one line what happened to a session. In the log, starts have no
// summary, nor have saves and closes without one from the caller.
func (e *Event) summary(session string) string {
	switch {
	case e.Summary != "":
		return e.Summary
	case e.Type == SessionStarted:
		return "session " + session + " started"
	case e.Type == SessionSaved:
		return "session " + session + " saved " + recordList(e.Records)
	case e.Type == SessionClosed && len(e.Records) > 0:
		return "session " + session + " closed, with " + recordList(e.Records) + " active"
	case e.Type == SessionClosed:
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

// addIDs adds ids to details. If there are too many, it adds the first of them and the
// total; without ids it adds nothing.
func addIDs(details map[string]any, name string, ids []string) {
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
func (b *Service) ActiveSessions(ctx context.Context, a ActiveSessionsArgs) (list []ActiveSession, err error) {
	err = b.read(ctx, a.Caller, a.At, func(ctx context.Context, s *callTx) error {
		number, err := s.mustExist(ctx, a.RecordID)
		if err != nil {
			return err
		}
		own, err := sessionID(ctx, s.log, a.Caller)
		if err != nil {
			return err
		}
		list, err = s.holders(ctx, number, own)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// holders returns the open sessions that have a record active.
func (s *callTx) holders(ctx context.Context, number int64, own string) ([]ActiveSession, error) {
	list := []ActiveSession{}
	err := s.tx.Each(ctx, func(rows *sql.Rows) error {
		var h ActiveSession
		err := rows.Scan(&h.SessionID, &h.LastActivity)
		h.IsCurrent = h.SessionID == own
		list = append(list, h)
		return err
	}, selectHolders, s.p.Key, number)
	return list, err
}
