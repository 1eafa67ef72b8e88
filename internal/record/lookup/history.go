package lookup

import (
	"context"
	"fmt"

	"cairn/internal/linediff"
	"cairn/internal/record"
)

const (
	selectHistory = `SELECT c.doc, ifnull(s.text, ''), c.at, ` + record.PreviousDoc + record.OfRecord + `AND c.at >= ?4
ORDER BY c.seq DESC LIMIT +?5`
)

// History lists the stored changes of a record, newest first.
//
// Errors: CodeNotFound, CodeInvalid for since and at.
func (b *Lookup) History(ctx context.Context, a record.HistoryArgs) ([]record.HistoryItem, error) {
	since, err := parseSince(a.Since)
	if err != nil {
		return nil, err
	}
	list := []record.HistoryItem{}
	err = b.ReadRecords(ctx, a.Caller, a.At, func(ctx context.Context, s *record.CallTx) error {
		number, err := s.MustExist(ctx, a.ID)
		if err != nil {
			return err
		}
		return s.EachVersion(ctx, func(v record.Logged) bool {
			list = append(list, item(&v))
			return true
		}, selectHistory, s.Stream, record.FormatID(number), s.Until, since, clamp(a.Limit, 50))
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

func item(v *record.Logged) record.HistoryItem {
	i := record.HistoryItem{
		Timestamp: record.Time(v.At), SessionID: v.Session, ChangeType: v.Event, Summary: entrySummary(v.Entry), Version: v.Version, Tick: v.Tick,
	}
	before := record.Record{}
	if v.Before != nil {
		before = v.Before.Record
	}
	i.Diff = bodyDiff(&before, &v.Record)
	if i.Other = v.Other; v.Other != nil {
		i.Diff = linediff.Unified(fmt.Sprintf("%s v%d", v.ID, v.Version), "the other version", v.Body, v.Other.Body)
	}
	return i
}

// entrySummary describes a change in one line.
func entrySummary(e *record.Entry) string {
	switch e.Event {
	case record.RecordCreated:
		return fmt.Sprintf("%s created: %s", e.ID, e.Title)
	case record.ConflictDetected:
		return otherSummary(e)
	case record.StateTransition:
		text := fmt.Sprintf("%s: %s → %s", e.ID, e.FromState, e.State)
		if e.ResolvedBy != "" {
			text += " by " + e.ResolvedBy
		}
		if e.Reason != "" {
			text += ": " + e.Reason
		}
		return text
	}
	text := fmt.Sprintf("%s updated: %s", e.ID, e.Title)
	if e.Forced {
		text += " (another session's version was overridden)"
	}
	return text
}

func bodyDiff(before, after *record.Record) string {
	name := func(r *record.Record) string {
		if r.Version == 0 {
			return "/dev/null"
		}
		return fmt.Sprintf("%s v%d", after.ID, r.Version)
	}
	return linediff.Unified(name(before), name(after), before.Body, after.Body)
}

// DiffOf compares two versions of a record. Equal fields are omitted.
func DiffOf(before, after *record.Record) record.Diff {
	pair := func(a, b string) *record.Pair {
		if a == b {
			return nil
		}
		return &record.Pair{Old: a, New: b}
	}
	return record.Diff{
		Title: pair(before.Title, after.Title), Summary: pair(before.Summary, after.Summary),
		Body: bodyDiff(before, after), State: pair(string(before.State), string(after.State)),
	}
}

// Diff compares two versions of a record (records §2, get_record_diff).
//
// Errors: CodeNotFound; CodeInvalid for an invalid moment or version, a moment before the
// record existed, and a to that is before from.
func (b *Lookup) Diff(ctx context.Context, a record.DiffArgs) (out record.VersionDiff, err error) {
	from, err := record.ParsePoint("from", a.From)
	if err != nil {
		return out, err
	}
	to := record.NowAs("to")
	if a.To != "" {
		if to, err = record.ParsePoint("to", a.To); err != nil {
			return out, err
		}
	}
	if to.IsBefore(from) {
		return out, record.Invalid("to", "to is before from")
	}
	err = b.Read(ctx, a.Caller, "", func(ctx context.Context, s *record.CallTx) error {
		r, err := s.MustFind(ctx, a.ID)
		if err != nil {
			return err
		}
		if out.FromVersion, err = s.VersionAt(ctx, a.Caller, r, from); err != nil {
			return err
		}
		if out.ToVersion, err = s.VersionAt(ctx, a.Caller, r, to); err != nil {
			return err
		}
		if out.ToVersion.Version < out.FromVersion.Version {
			return record.Invalid("to", "to is before from")
		}
		out.Diff = DiffOf(&out.FromVersion, &out.ToVersion)
		return nil
	})
	return out, err
}

// otherSummary describes in one line which version was kept next to the newest.
func otherSummary(e *record.Entry) string {
	return fmt.Sprintf("%s: a version from elsewhere, made from version %d, is kept beside the newest: %s", e.ID, e.Other.Base, e.Other.Title)
}
