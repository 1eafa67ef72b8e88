package why

import (
	"context"
	"slices"
	"strings"

	"cairn/internal/citation"
	"cairn/internal/fault"
	"cairn/internal/project"
	"cairn/internal/record"
)

// workingTree returns the folder that the records of a caller's project are compared with.
// It is the worktree of the working directory if that belongs to the project, otherwise
// the project's root. ok is false if this machine has no such folder, and in home
// directories.
func (s *Service) workingTree(ctx context.Context, caller record.Caller) (t citation.Tree, ok bool, err error) {
	name := caller.ProjectID
	if name == "" {
		name = caller.Project
	}
	root := s.Place.Root
	if name != "" || root == "" {
		var here, p project.Project
		if s.Place.Cwd != "" {
			if here, err = s.projectAt(ctx, s.Place); err != nil {
				return t, false, err
			}
		}
		if p = here; name != "" {
			p, err = s.projectNamed(ctx, name)
		}
		if fault.KindOf(err) == fault.NotFound && err != nil {
			return t, false, nil // the record call reports the unknown project, or creates it
		}
		if err != nil {
			return t, false, err
		}
		if root = p.Root; p.ID == here.ID && s.Place.Root != "" {
			root = s.Place.Root
		}
	}
	if root == s.Home {
		return t, false, nil
	}
	t, ok = citation.Open(root)
	return t, ok, nil
}

// Cite returns the citations in the body of a record, with hashes of the cited text in the
// working tree (contract records §4.2). old is the previous record, zero for a new one.
// Without a working tree the citations have no hash. A citation that old contains keeps
// its hash as long as its text is found or its line of the body is unchanged. So editing
// other parts of a record does not hide a drift or make the citation refer to other code.
func (s *Service) Cite(ctx context.Context, caller record.Caller, body string, old record.Record) ([]record.Cited, error) {
	if len(body) > maxCiting {
		return nil, nil // such a body is rejected anyway
	}
	body, _ = s.Filter.Text(body)
	found := citation.Parse(body)
	if len(found) == 0 {
		return nil, nil
	}
	tree, known, err := s.workingTree(ctx, caller)
	if err != nil {
		return nil, err
	}
	taken := make([]citation.Cited, len(found))
	for i := range found {
		taken[i].Citation = found[i]
	}
	var judged []citation.DriftResult
	before := readCited(old.Cited)
	if known {
		if taken, err = tree.HashLines(ctx, found); err != nil {
			return nil, err
		}
		if judged, err = tree.CheckDrift(ctx, before); err != nil {
			return nil, err
		}
	}
	out := make([]record.Cited, len(taken))
	for i, t := range taken {
		b := slices.IndexFunc(before, func(o citation.Cited) bool { return o.Citation == t.Citation && o.Hash != "" })
		if b >= 0 && (!known || !judged[b].Checked || !judged[b].Drifted || inEqualLines(old.Body, body, t.Citation)) {
			t = before[b]
		}
		out[i] = record.Cited{Path: t.Path, Lines: t.Lines(), Hash: t.Hash}
	}
	return out, nil
}

// maxCiting is the maximum size of a body in bytes.
const maxCiting = 1 << 20

// inEqualLines reports whether a citation is in a line that both bodies contain.
func inEqualLines(old, body string, c citation.Citation) bool {
	lines := map[string]bool{}
	for l := range strings.SplitSeq(old, "\n") {
		lines[l] = true
	}
	for l := range strings.SplitSeq(body, "\n") {
		if lines[l] && slices.Contains(citation.Parse(l), c) {
			return true
		}
	}
	return false
}

// readCited parses a record's citations. An invalid citation results in an empty one.
func readCited(list []record.Cited) []citation.Cited {
	out := make([]citation.Cited, len(list))
	for i, c := range list {
		out[i].Path = c.Path
		if first, last, ok := citation.ParseLines(c.Lines); ok {
			out[i] = citation.Cited{Citation: citation.Citation{Path: c.Path, First: first, Last: last}, Hash: c.Hash}
		}
	}
	return out
}

// Shown collects the records in a result, so that Judge can check them together.
type Shown struct {
	records []*record.Record
	refs    []*record.Ref
}

// Record adds a record. It ignores nil.
func (s *Shown) Record(r *record.Record) {
	if r != nil {
		s.records = append(s.records, r)
	}
}

// Ref adds a record without its body.
func (s *Shown) Ref(r *record.Ref) { s.refs = append(s.refs, r) }

// Refs adds a list of records without their bodies.
func (s *Shown) Refs(refs []record.Ref) {
	for i := range refs {
		s.Ref(&refs[i])
	}
}

// Bundle adds the records that are loaded with a record.
func (s *Shown) Bundle(b *record.Bundle) {
	s.Record(&b.Target)
	s.Record(b.Parent)
	for i := range b.Children.Open {
		s.Record(&b.Children.Open[i])
	}
	s.Refs(b.Children.Other)
	s.Refs(b.Grandchildren)
}

// Judge marks the citations of all shown records that have drifted from the working tree
// of the caller's project. It marks nothing without a working tree. It also marks nothing
// for records of the past (at is not ""), because their working tree no longer exists.
// Errors: those of the store, and the end of ctx.
func (s *Service) Judge(ctx context.Context, caller record.Caller, at string, all Shown) (err error) {
	if !all.cites() {
		return nil
	}
	var tree citation.Tree
	known := false
	if at == "" {
		if tree, known, err = s.workingTree(ctx, caller); err != nil {
			return err
		}
	}
	return all.judge(ctx, tree, known)
}

func (s *Shown) cites() bool {
	return slices.ContainsFunc(s.records, func(r *record.Record) bool { return len(r.Cited) > 0 }) ||
		slices.ContainsFunc(s.refs, func(r *record.Ref) bool { return len(r.Cited) > 0 })
}

func (s *Shown) judge(ctx context.Context, tree citation.Tree, known bool) (err error) {
	var all []citation.Cited
	for _, r := range s.records {
		all = append(all, readCited(r.Cited)...)
	}
	for _, r := range s.refs {
		all = append(all, readCited(r.Cited)...)
	}
	verdicts := make([]citation.DriftResult, len(all))
	if known {
		if verdicts, err = tree.CheckDrift(ctx, all); err != nil {
			return err
		}
	}
	for _, r := range s.records {
		r.Drifted, r.Citations = false, nil
		for i, k := range r.Cited {
			c, v := record.Citation{Path: k.Path, Lines: k.Lines}, verdicts[i]
			if v.Checked {
				c.Drifted = &v.Drifted
			}
			if v.First > 0 {
				c.NowAt = citation.Citation{First: v.First, Last: v.Last}.Lines()
			}
			r.Citations = append(r.Citations, c)
			r.Drifted = r.Drifted || v.Drifted
		}
		verdicts = verdicts[len(r.Cited):]
	}
	for _, r := range s.refs {
		r.Drifted = slices.ContainsFunc(verdicts[:len(r.Cited)], func(v citation.DriftResult) bool { return v.Drifted })
		verdicts = verdicts[len(r.Cited):]
	}
	return nil
}
