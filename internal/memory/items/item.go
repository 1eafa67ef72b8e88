package items

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/rules"
	"cairn/internal/store"
	"cairn/internal/strictjson"
)

// Kinds of the lines of an export: linePrefix and the kind of the change.
const (
	linePrefix = "memory."

	LineVault     = linePrefix + memory.KindVault
	LineMemory    = linePrefix + memory.KindMemory
	LineEntry     = linePrefix + memory.KindEntry
	LineContext   = linePrefix + memory.KindContext
	LineTombstone = linePrefix + kindTombstone
)

// kindTombstone is the kind of an item that names something deleted. Only exports have it.
const kindTombstone = "tombstone"

// Item is one vault, memory, entry, context or deletion that comes from elsewhere: a line of an
// export, a change of a hub, or a change of the store's own log. Its JSON form is a line of an
// export. In that, Doc has no localIds, positions or numbers of a hub, and an entry has its latest
// state.
type Item struct {
	Kind    string          `json:"kind,omitempty"`
	Owner   string          `json:"owner,omitempty"`   // of a vault: its user; "" for the device's own
	Project string          `json:"project,omitempty"` // of a memory: the id of the project whose default memory it is
	Memory  string          `json:"memory,omitempty"`  // of entries, contexts and deletions: the id of their memory
	Doc     json.RawMessage `json:"doc"`               // nil if it was blanked

	// Of a change of a hub or of the log.
	Op  string `json:"-"` // store.OpPut, OpPatch, OpConfirm or store.OpDelete; "" means OpPut
	ID  string `json:"-"` // the id of the change
	Key string `json:"-"` // the hub key

	// Of a change of a hub.
	HubSeq int64  `json:"-"`
	Device string `json:"-"` // the device incarnation that sent it to the hub, "" if unknown

	seq    int64 // of a change of this store's log
	parsed any   // Doc as Validate or Check has parsed it; nil if it was blanked
}

// name returns the kind and the op.
func (d *Item) name() string {
	op := d.Op
	if op == "" {
		op = store.OpPut
	}
	return strings.TrimPrefix(d.Kind, linePrefix) + " " + op
}

// newDoc returns a value of the type of a document by kind and op; nil for other changes.
func newDoc(name string) any {
	switch name {
	case memory.KindVault + " " + store.OpPut:
		return &memory.VaultDoc{}
	case memory.KindMemory + " " + store.OpPut:
		return &memory.MemoryDoc{}
	case memory.KindEntry + " " + store.OpPut:
		return &contents.EntryDoc{}
	case memory.KindEntry + " " + memory.OpPatch:
		return &contents.ChangeDoc{}
	case memory.KindEntry + " " + memory.OpConfirm:
		return &contents.ConfirmDoc{}
	case memory.KindEntry + " " + store.OpDelete:
		return &contents.EntryDeleteDoc{}
	case memory.KindContext + " " + store.OpPut:
		return &contents.ContextDoc{}
	case kindTombstone + " " + store.OpPut:
		return &tombstoneDoc{}
	}
	return nil
}

// Validate parses the document of a change and checks its shape and the id of an entry. The hub
// has checked the texts already. Errors: CodeInvalid, without text of the document.
func (d *Item) Validate() error {
	v := newDoc(d.name())
	if v == nil || d.Doc == nil {
		return nil
	}
	if err := json.Unmarshal(d.Doc, v); err != nil {
		return rules.Invalid("doc", "the document of a change of kind %s is not readable", d.Kind)
	}
	if e, ok := v.(*contents.EntryDoc); ok && e.EntryID != "" {
		id, ok := rules.ParseID(e.EntryID)
		if !ok {
			return rules.Invalid("doc", "an entry has an entryId that is not a UUID")
		}
		e.EntryID = id
	}
	d.parsed = v
	return nil
}

// Check parses and validates a line of an export, which may have been edited: it also checks texts,
// ids and times, and refuses unknown fields. The error contains no text of the line.
func (d *Item) Check() error {
	d.parsed = newDoc(d.name())
	v := d.parsed
	if strings.TrimPrefix(d.Kind, linePrefix) == memory.KindMemory {
		v = &exportedMemory{}
	}
	if v == nil || len(d.Doc) == 0 || d.Doc[0] != '{' {
		return errors.New("its doc is not a JSON object")
	}
	switch err := strictjson.Decode(d.Doc, v); {
	case errors.Is(err, strictjson.ErrMore):
		return errors.New("there is more after its doc")
	case err != nil:
		return errors.New("its doc is not that of its kind")
	}
	if m, ok := v.(*exportedMemory); ok {
		d.parsed = m.doc()
	}
	return cmp.Or(d.checkPlace(), d.checkDoc())
}

// checkPlace checks the fields next to the document.
func (d *Item) checkPlace() error {
	ofMemory := d.Kind != LineVault && d.Kind != LineMemory
	switch {
	case d.Owner != "" && d.Kind != LineVault, d.Project != "" && d.Kind != LineMemory, (d.Memory != "") != ofMemory:
		return errors.New("it has a field that lines of its kind do not have")
	case d.Owner != "" && !isID(d.Owner), ofMemory && !isID(d.Memory):
		return errors.New("one of its ids is not valid")
	}
	return nil
}

// isID reports whether a text is an id as the store spells it.
func isID(text string) bool {
	id, ok := rules.ParseID(text)
	return ok && id == text
}

// Errors of Check about the content of a document.
var (
	errID        = errors.New("one of its ids is not valid")
	errText      = errors.New("its text breaks a rule for texts of its kind")
	errTimeRange = errors.New("its time is out of range")
)

func (d *Item) checkDoc() error {
	switch doc := d.parsed.(type) {
	case *memory.VaultDoc:
		return cmp.Or(checkIDs(doc.VaultID), checkTexts(rules.ValidateTitle(doc.Title, doc.Description)), checkTime(doc.CreationTime))
	case *memory.MemoryDoc:
		return cmp.Or(checkIDs(doc.MemoryID, doc.VaultID), checkTime(doc.CreationTime),
			checkTexts(rules.ValidateTitle(doc.Title, doc.Description), rules.ValidateType(doc.MemoryType), rules.CheckLength("projectUid", doc.ProjectUID(), memory.UIDDigits)))
	case *contents.EntryDoc:
		return check(doc)
	case *contents.ContextDoc:
		ids := []string{doc.ContextID, doc.SessionID}
		for _, id := range []string{doc.Base(), doc.ConflictWith} {
			if id != "" {
				ids = append(ids, id)
			}
		}
		return cmp.Or(checkIDs(ids...), checkTime(doc.UpdatedAt), checkHubKey(doc.Key),
			checkTexts(rules.ValidateContext(doc.Markdown, maxLine), rules.CheckLength("traceparent", doc.Trace, rules.MaxKey)))
	case *tombstoneDoc:
		if !isID(doc.ID) && checkHubKey(doc.ID) != nil || doc.ID == "" {
			return errID
		}
		return checkTime(doc.At)
	}
	return nil
}

// check checks an entry of an export.
func check(d *contents.EntryDoc) (err error) {
	if d.LocalID != "" || d.EntryID == "" && d.Key == "" { // it belongs to a device, or cannot be identified
		return errID
	}
	for _, id := range []string{d.EntryID, d.SessionID, d.CorrectedEntryID} {
		if id != "" && !isID(id) {
			return errID
		}
	}
	d.Metadata, err = rules.ValidateEntry(d.RawEntry, d.Summary, d.Tags, d.Metadata)
	return cmp.Or(checkHubKey(d.Key), checkTime(d.CreationTime), checkTime(d.CapturedTime),
		checkTexts(err, rules.CheckLength("correctionReason", d.CorrectionReason, rules.MaxReason), rules.CheckLength("traceparent", d.Trace, rules.MaxKey)))
}

func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !isID(id) {
			return errID
		}
	}
	return nil
}

// checkTexts replaces errors that may contain text.
func checkTexts(errs ...error) error {
	if cmp.Or(errs...) != nil {
		return errText
	}
	return nil
}

func checkTime(at memory.Time) error {
	if at <= 0 {
		return errTimeRange
	}
	return nil
}

// checkHubKey checks a hub key, "" for none.
func checkHubKey(key string) error {
	if rules.CheckLength("key", key, rules.MaxKey) != nil {
		return errID
	}
	return nil
}

// References checks the lines of an export one by one: their order, and that each line comes after
// those that it refers to. The zero value is ready. Use it in one goroutine.
type References struct {
	vaults, memories map[string]bool
	stage            int
}

// The order of lines.
var lineStages = map[string]int{LineVault: 0, LineMemory: 1, LineEntry: 2, LineContext: 2, LineTombstone: 2}

// Check reports what is wrong with a line after those before it, "" if nothing.
// hasProject reports whether the file has a project.
func (r *References) Check(d *Item, hasProject func(id string) bool) string {
	if r.vaults == nil {
		r.vaults, r.memories = map[string]bool{}, map[string]bool{}
	}
	stage := lineStages[d.Kind]
	if stage < r.stage {
		return "it is not in the place of its kind"
	}
	r.stage = stage
	switch doc := d.parsed.(type) {
	case *memory.VaultDoc:
		if r.vaults[doc.VaultID] {
			return "this vault is in the file twice"
		}
		r.vaults[doc.VaultID] = true
	case *memory.MemoryDoc:
		switch {
		case r.memories[doc.MemoryID]:
			return "this memory is in the file twice"
		case !r.vaults[doc.VaultID]:
			return "it refers to a vault that the file does not have before it"
		case d.Project != "" && !hasProject(d.Project):
			return "it refers to a project that the file does not have"
		}
		r.memories[doc.MemoryID] = true
	case *tombstoneDoc: // its memory may be what was deleted
	default:
		if !r.memories[d.Memory] {
			return "it refers to a memory that the file does not have before it"
		}
	}
	return ""
}
