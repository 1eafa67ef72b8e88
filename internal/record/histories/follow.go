package histories

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/record"
	"cairn/internal/redact"
	"cairn/internal/strictjson"
)

// CodeNewerDocument (Unavailable) marks a change's document with a field that only a
// newer cairn can have written.
const CodeNewerDocument = "record_newer"

// change is a change with its decoded document: either entry or event is set, unless the
// document was forgotten.
type change struct {
	Document
	entry    *record.Entry
	event    *record.Event
	redacted bool // a secret was found in it
}

// read decodes the document of a change. why is the reason if it is invalid.
func (d *Document) read() (c change, why error) {
	c = change{Document: *d}
	if d.Doc == nil {
		return c, nil
	}
	if d.Kind == record.KindEvent {
		c.event = &record.Event{}
		return c, readDocument(d.Doc, c.event, "its doc is not an event")
	}
	c.entry = &record.Entry{}
	if why := readDocument(d.Doc, c.entry, "its doc is not a version of a record"); why != nil {
		return c, why
	}
	c.entry.Created, c.entry.Modified, c.entry.Cited = record.Time(c.entry.CreatedNS), record.Time(c.entry.ModifiedNS), c.entry.Sources
	c.entry.Metadata = record.Canonical(c.entry.Metadata)
	return c, nil
}

func readDocument(doc []byte, into any, otherwise string) error {
	err := strictjson.Decode(doc, into)
	if err == nil {
		return nil
	}
	if field, ok := errors.AsType[strictjson.UnknownField](err); ok {
		return fault.Newf(fault.Unavailable, CodeNewerDocument, "this cairn does not know its doc's field %.60s", string(field))
	}
	return errors.New(otherwise)
}

// write encodes the document in the spelling of this store's log.
func (c *change) write() (err error) {
	if c.event != nil {
		c.Doc, err = json.Marshal(c.event)
	} else {
		c.Doc, err = json.Marshal(c.entry)
	}
	return err
}

// redact applies the current redaction rules to a change, which may be older.
func (c *change) redact(filter *redact.Filter) error {
	if c.Doc == nil {
		return nil
	}
	texts := []*string{}
	var objects []*json.RawMessage
	if c.event != nil {
		texts = append(texts, &c.event.Summary)
	} else {
		texts, objects = textsOf(c.entry), objectsOf(c.entry)
	}
	for _, object := range objects {
		found, err := redactObject(object, filter)
		if err != nil {
			return err
		}
		c.redacted = c.redacted || found
	}
	for _, s := range texts {
		text, found := filter.Text(*s)
		*s, c.redacted = text, c.redacted || found
	}
	return c.write()
}

// textsOf returns what people wrote in a version, without its metadata.
func textsOf(e *record.Entry) []*string {
	list := []*string{&e.Title, &e.Summary, &e.Body, &e.Reason, &e.Type}
	if o := e.Other; o != nil {
		list = append(list, &o.Title, &o.Summary, &o.Body, &o.Type)
		if o.Merged != nil {
			list = append(list, o.Merged)
		}
	}
	return list
}

func objectsOf(e *record.Entry) []*json.RawMessage {
	if e.Other == nil {
		return []*json.RawMessage{&e.Metadata}
	}
	return []*json.RawMessage{&e.Metadata, &e.Other.Metadata}
}

func redactObject(text *json.RawMessage, filter *redact.Filter) (found bool, err error) {
	object, err := record.DecodeObject(*text)
	if err != nil || object == nil {
		return false, err
	}
	v, found := filter.Value(object)
	if clean, ok := v.(map[string]any); ok && found {
		*text, err = json.Marshal(clean)
	}
	return found, err
}

// historyState is the state after the changes of a project so far, as needed to check the
// next ones.
type historyState struct {
	tick    int64
	records map[int64]lastVersion
}

// lastVersion is the last version of a record, as needed to check the next one.
type lastVersion struct {
	version, depth int
	parent         string
	created        int64 // 0 if there is no known version
}

// follow checks a change at its position and adds it to the state. It returns a
// human-readable error if the change cannot follow, else nil.
func (h *historyState) follow(c *change) error {
	if c.Doc == nil {
		return h.forget(c)
	}
	if c.event != nil {
		return h.followEvent(c)
	}
	d := c.entry
	number, ok := record.NumberOf(d.ID)
	if !ok || c.ID != d.ID {
		return errors.New("its id is not a record's, or differs from its doc's")
	}
	if d.Tick != h.tick+1 {
		return errors.New("its tick does not follow the one before it")
	}
	old := h.records[number] // version 0 if there is none
	if d.Version != old.version+1 {
		return errors.New("its version does not follow the one before it")
	}
	why := checkNumbers(d, number)
	if why == nil {
		why = checkTexts(d)
	}
	if why != nil {
		return why
	}
	depth, why := h.place(d, old)
	if why != nil {
		return why
	}
	h.tick, h.records[number] = d.Tick, lastVersion{d.Version, depth, record.Deref(d.ParentID), d.CreatedNS}
	return nil
}

// MaxLostIDs is the maximum lead of record numbers over ticks. Each record costs a tick,
// but a store restored from a damaged archive has fewer ticks than used ids (see
// Reindexer).
const MaxLostIDs = 1_000_000

// checkNumbers checks the fields of a version that are not texts.
func checkNumbers(e *record.Entry, number int64) error {
	moment := e.CreatedNS > 0 && e.ModifiedNS > 0
	clock := 0 <= e.SyncTick && e.SyncTick <= e.Tick && number <= e.Tick+MaxLostIDs
	base := 0 <= e.Base && e.Base <= e.Version
	event := record.RecordCreated
	switch {
	case e.Other != nil && e.Version > 1:
		event = record.ConflictDetected
	case e.Event == record.StateTransition && e.Version > 1:
		event = record.StateTransition
	case e.Version > 1:
		event = record.RecordUpdated
	}
	switch {
	case !slices.Contains(record.States(), e.State) || !moment || !clock || !base:
		return errors.New("its state, time or one of its numbers is out of range")
	case e.Event != event:
		return errors.New("its event does not fit the version")
	case e.Drifted || len(e.Citations) > 0:
		return errors.New("it contains the state of citations, which changes never contain")
	}
	return nil
}

// checkTexts checks the texts of a version.
func checkTexts(e *record.Entry) error {
	for _, text := range textsOf(e) {
		limit := maxDocumentLine
		if text == &e.Body || e.Other != nil && (text == &e.Other.Body || text == e.Other.Merged) {
			limit = maxDocumentBody
		}
		switch {
		case len(*text) > limit:
			return errors.New("one of its texts is too long")
		case strings.ContainsRune(*text, 0):
			return errors.New("one of its texts contains a NUL character")
		}
	}
	for _, object := range objectsOf(e) {
		switch {
		case len(*object) > maxDocumentBody || len(e.Related) > maxDocumentRelated:
			return errors.New("one of its texts is too long")
		case len(*object) > 0 && (*object)[0] != '{':
			return errors.New("its metadata is not a JSON object")
		}
	}
	return checkOrigin(e.Origin)
}

// place returns the depth of a version in the tree. why is the reason if its references
// are invalid.
func (h *historyState) place(d *record.Entry, old lastVersion) (depth int, why error) {
	depth = 1
	if d.ParentID != nil {
		p, ok := h.find(*d.ParentID)
		if !ok {
			return 0, errors.New("its parent is not an earlier record")
		}
		depth = p.depth + 1
	}
	if old.created > 0 && (old.parent != record.Deref(d.ParentID) || old.created != d.CreatedNS) {
		return 0, errors.New("its parent or its creation differs from the version before it")
	}
	for _, id := range append(slices.Clone(d.Related), d.ResolvedBy) {
		if _, ok := h.find(id); !ok && id != "" {
			return 0, errors.New("it refers to a record that is not an earlier one")
		}
	}
	if depth > record.MaxTreeDepth {
		return 0, errors.New("its tree is too deep")
	}
	return depth, nil
}

func (h *historyState) find(id string) (lastVersion, bool) {
	number, _ := record.NumberOf(id)
	s, ok := h.records[number]
	return s, ok
}

func (h *historyState) hasAll(ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { _, ok := h.find(id); return !ok })
}

// eventTypes returns the types that an Event can have.
func eventTypes() []string {
	return []string{
		record.SessionStarted, record.SessionSaved, record.SessionClosed, record.SessionBranched, record.RecordActivation, record.ConflictDetected, record.ConflictResolved,
		record.SessionSynced, record.RecordReloaded,
	}
}

func (h *historyState) followEvent(c *change) error {
	d := c.event
	r, known := h.find(d.RecordID)
	tick := int64(0)
	if d.Type == record.SessionSaved {
		tick = h.tick + 1
	}
	base := 0 <= d.Base && d.Base <= r.version
	synced := 0 <= d.SyncTick && d.SyncTick <= max(h.tick, d.Tick)
	switch {
	case !slices.Contains(eventTypes(), d.Type):
		return errors.New("its event is of an unknown type")
	case c.ID != c.Session:
		return errors.New("its id is not its session's")
	case d.Tick != tick:
		return errors.New("its tick does not follow the one before it")
	case d.RecordID != "" && !known || !h.hasAll(d.Records):
		return errors.New("it refers to a record that is not an earlier one")
	case !base || !synced:
		return errors.New("one of its numbers is out of range")
	case d.Type == record.SessionBranched && d.Parent == "":
		return errors.New("its parent session is missing")
	case len(d.Summary)+len(d.Parent) > maxDocumentLine:
		return errors.New("one of its texts is too long")
	case checkOrigin(d.Origin) != nil:
		return checkOrigin(d.Origin)
	}
	h.tick = max(h.tick, d.Tick)
	return nil
}

// forget adds a change without a document to the state. Of a version only its existence
// is known.
func (h *historyState) forget(c *change) error {
	if c.Tick == 0 {
		return nil
	}
	if c.Tick != h.tick+1 {
		return errors.New("its tick does not follow the one before it")
	}
	if c.Kind == record.KindRecord {
		number, ok := record.NumberOf(c.ID)
		if !ok || number > c.Tick+MaxLostIDs {
			return errors.New("its id is not a record's")
		}
		h.records[number] = lastVersion{version: h.records[number].version + 1, depth: max(h.records[number].depth, 1)}
	}
	h.tick = c.Tick
	return nil
}
