package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cairn/internal/regular"
)

// Reason is the reason why a store continues as a new device incarnation.
type Reason string

// The reasons of an Incarnation.
const (
	ReasonMoved    Reason = "moved"    // the store was found on another machine or in another folder
	ReasonBehind   Reason = "behind"   // the hub has changes of the device that the store lacks
	ReasonRestored Reason = "restored" // `cairn restore` replaced the store with a backup
	ReasonSalvaged Reason = "salvaged" // the end of the change log may be lost
)

// Incarnation is a device under which a store continued. The origin of a change is (Device,
// DeviceSeq). A new incarnation counts from 1, so no origin is used twice.
type Incarnation struct {
	Device     string    `json:"device"`
	Before     string    `json:"before"` // the device until then
	At         time.Time `json:"at"`
	Reason     Reason    `json:"reason"`
	Path       string    `json:"path,omitempty"`          // moved: where the store was found
	FromPath   string    `json:"fromPath,omitempty"`      // moved: where it was before
	LastCommon time.Time `json:"lastCommon,omitzero"`     // behind: time of the newest change that both the hub and the store are known to have
	Renumbered int64     `json:"renumbered,omitempty"`    // behind: number of later changes, which have the new origin
	Returned   int64     `json:"returnedItems,omitempty"` // behind: items of the former device that were pulled from the hub
}

const (
	metaPlaces      = "device.places"
	metaIncarnation = "incarnation/" // followed by the device
	maxPlaces       = 8

	// maxRenumbered limits the changes that Renew gives a new origin, because all of them
	// change in one transaction. Older changes keep their origin; no other device has received
	// them.
	maxRenumbered = 20_000

	selectOwnDevice    = `SELECT value, ifnull((SELECT value FROM store_meta WHERE name = 'device.places'), '') FROM store_meta WHERE name = 'device'`
	upsertMeta         = `INSERT INTO store_meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value`
	selectDevice       = `SELECT value FROM store_meta WHERE name = 'device'`
	updateDevice       = `UPDATE store_meta SET value = ? WHERE name = 'device'`
	deletePlaces       = `DELETE FROM store_meta WHERE name = 'device.places'`
	selectIncarnations = `SELECT value FROM store_meta WHERE name GLOB 'incarnation/*' ORDER BY name`
	selectFormer       = `SELECT value FROM store_meta WHERE name = 'incarnation/' || ?`
	selectOwnAt        = changeColumns + `WHERE c.device = (SELECT id FROM symbols WHERE text = ?) AND c.device_seq = ?`
	selectNewest       = changeColumns + `WHERE c.device = (SELECT id FROM symbols WHERE text = ?) ORDER BY c.device_seq DESC LIMIT 1`
	selectCommon       = `SELECT ifnull(max(device_seq), 0), ifnull(max(at), 0) FROM changes WHERE device = (SELECT id FROM symbols WHERE text = ?) AND seq <= ?`
	selectOwnAfter     = changeColumns + `WHERE c.device = (SELECT id FROM symbols WHERE text = ?) AND c.device_seq > ? ORDER BY c.device_seq LIMIT +?`
	updateOrigin       = `UPDATE changes SET device = ?, device_seq = ?, prev_hash = ? WHERE seq = ?`
)

// place is the location of a store: the machine and the file. It never leaves the store.
type place struct {
	Machine string `json:"machine,omitempty"` // a hash; "" if the machine has no id
	Path    string `json:"path"`
	File    string `json:"file,omitempty"` // the file's number in its file system; "" if unknown
}

// is reports whether two places are the same. A store that was moved on its file system
// keeps its file number. One that was replaced at its path, as by a restore, keeps the
// path. A process in a container without a machine id recognises the file by its number.
func (p place) is(o place) bool {
	if p.Machine != o.Machine && p.Machine != "" && o.Machine != "" {
		return false
	}
	return p.File != "" && p.File == o.File || p.Machine == o.Machine && p.Path == o.Path
}

// machineFiles contain the id of the machine on Linux.
var machineFiles = [...]string{"/etc/machine-id", "/var/lib/dbus/machine-id"}

// machineID returns a hash of the machine's id, "" if the system has none in a file.
func machineID() string {
	for _, name := range machineFiles {
		text, err := regular.Read(name, 256)
		id := strings.TrimSpace(string(text))
		if err != nil || len(id) < 16 { // such as "uninitialized"
			continue
		}
		sum := sha256.Sum256([]byte("cairn device\n" + id))
		return hex.EncodeToString(sum[:8])
	}
	return ""
}

// here returns the place of the store. It is computed once.
func (s *Store) here() place {
	s.placing.Do(func() {
		path, err := filepath.Abs(s.path)
		if err != nil {
			path = s.path
		}
		info, err := os.Stat(s.path)
		if err == nil {
			s.place.File = fileNumber(info)
		}
		s.place.Machine, s.place.Path = machineID(), path
	})
	return s.place
}

// device returns the store's device. In a write it first checks that the store is at a
// known place of the device. Otherwise the store was copied or moved, and continues as a
// new incarnation.
func (t *Tx) device(ctx context.Context) (string, error) {
	if t.log != nil && t.log.own != "" {
		return t.log.own, nil
	}
	var own, places string
	if err := t.Get(ctx, []any{&own, &places}, selectOwnDevice); err != nil || t.log == nil {
		return own, err
	}
	t.log.own = own
	if t.store.temporaryPath {
		return own, nil
	}
	err := t.checkPlace(ctx, places)
	return t.log.own, err
}

// checkPlace compares the store's place with the known places of its device. Several are
// kept, because a store on a shared disk has one for each machine that uses it.
func (t *Tx) checkPlace(ctx context.Context, text string) error {
	here := t.store.here()
	var known []place
	if err := json.Unmarshal([]byte(text), &known); err != nil && text != "" {
		known = nil // damaged: store the place again
	}
	at := slices.IndexFunc(known, here.is)
	switch {
	case at >= 0 && (known[at] == here || here.Machine == "" && known[at].Machine != ""):
		return nil
	case at >= 0:
		known[at] = here
	default:
		known = append([]place{here}, known...)
	}
	known = known[:min(len(known), maxPlaces)]
	value, err := json.Marshal(known)
	if err == nil {
		_, err = t.Exec(ctx, upsertMeta, metaPlaces, string(value))
	}
	if err != nil || at >= 0 || len(known) == 1 {
		return err
	}
	_, err = t.renew(ctx, Incarnation{Reason: ReasonMoved, Path: here.Path, FromPath: known[1].Path}, 0)
	return err
}

// renew lets the store continue as a new device, stores the reason and logs it. If the
// reason is ReasonBehind, the changes after the number common get the new origin.
func (t *Tx) renew(ctx context.Context, i Incarnation, common int64) (_ Incarnation, err error) {
	i.Before, i.Device, i.At = t.log.own, NewID(), t.now.UTC()
	if _, err := t.Exec(ctx, updateDevice, i.Device); err != nil {
		return i, err
	}
	*t.log = logHead{own: i.Device}
	if i.Reason == ReasonBehind {
		if i.Renumbered, err = t.renumber(ctx, i.Before, common); err != nil {
			return i, err
		}
	}
	if err := t.noteIncarnation(ctx, i); err != nil {
		return i, err
	}
	doc, err := json.Marshal(map[string]any{"before": i.Before, "reason": i.Reason})
	if err == nil {
		_, err = t.Append(ctx, Change{Stream: "store", Kind: "device", ID: i.Device, Op: OpPut, Doc: doc})
	}
	return i, err
}

func (t *Tx) noteIncarnation(ctx context.Context, i Incarnation) error {
	value, err := json.Marshal(i)
	if err == nil {
		_, err = t.Exec(ctx, upsertMeta, metaIncarnation+i.Device, string(value))
	}
	return err
}

// Origin returns the store's device and its newest change: its number and its hash, as
// lower-case hex. Number 0 and hash "" mean that the device has no change yet.
func (s *Store) Origin(ctx context.Context) (device string, seq int64, hash string, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		if device, err = tx.device(ctx); err != nil {
			return err
		}
		var last Change
		err := tx.Each(ctx, func(r *sql.Rows) error { return scanChange(r, &last) }, selectNewest, device)
		if seq = last.DeviceSeq; seq > 0 {
			hash = hex.EncodeToString(last.Hash())
		}
		return err
	})
	return device, seq, hash, err
}

// Continues reports whether the store has the change of its device with a number and a
// hash, as Origin returns them. If it does not, another copy of the store has used the
// device: this store was restored from an older backup, or it was cloned. A change that
// was trimmed from the log counts as present, and so does number 0.
func (s *Store) Continues(ctx context.Context, device string, seq int64, hash string) (yes bool, err error) {
	err = s.Read(ctx, func(ctx context.Context, tx *Tx) error {
		own, err := tx.device(ctx)
		if yes = own != device || seq == 0; err != nil || yes {
			return err
		}
		var last, at Change
		if err := tx.Each(ctx, func(r *sql.Rows) error { return scanChange(r, &last) }, selectNewest, device); err != nil {
			return err
		}
		if last.DeviceSeq < seq {
			return nil
		}
		err = tx.Each(ctx, func(r *sql.Rows) error { return scanChange(r, &at) }, selectOwnAt, device, seq)
		yes = at.DeviceSeq == 0 || hex.EncodeToString(at.Hash()) == hash
		return err
	})
	return yes, err
}

// Renew lets the store continue as a new device incarnation because the hub has later changes
// of the device. The store's own changes after the position common of this log get the new
// origin, at most the newest 20,000. Another copy of the store may have used the old origin.
// Their positions, ids and documents stay. If the store's device is no longer the given one,
// another process has renewed it. Then nothing changes, and the result is nil.
func (s *Store) Renew(ctx context.Context, device string, common int64) (out *Incarnation, err error) {
	err = s.Write(ctx, Full, func(ctx context.Context, tx *Tx) error {
		out = nil
		own, err := tx.device(ctx)
		if err != nil || own != device {
			return err
		}
		i := Incarnation{Reason: ReasonBehind}
		var after, at int64
		if err := tx.Get(ctx, []any{&after, &at}, selectCommon, device, common); err != nil {
			return err
		}
		if at > 0 {
			i.LastCommon = time.Unix(0, at).UTC()
		}
		i, err = tx.renew(ctx, i, after)
		out = &i
		return err
	})
	return out, err
}

// renumber moves a former device's changes after one of its numbers to the store's
// device, which has no change yet.
func (t *Tx) renumber(ctx context.Context, device string, after int64) (n int64, err error) {
	var last Change
	if err := t.Each(ctx, func(r *sql.Rows) error { return scanChange(r, &last) }, selectNewest, device); err != nil {
		return 0, err
	}
	after = max(after, last.DeviceSeq-maxRenumbered)
	if err := t.readHead(ctx, t.log.own, t.log); err != nil {
		return 0, err
	}
	id, err := t.symbol(ctx, t.log.own)
	for err == nil {
		var page []Change
		err = t.Each(ctx, func(r *sql.Rows) error {
			var c Change
			err := scanChange(r, &c)
			page = append(page, c)
			return err
		}, selectOwnAfter, device, after, 1000)
		if err != nil || len(page) == 0 {
			break
		}
		for i := range page {
			c := &page[i]
			after, c.Device, c.DeviceSeq, c.PrevHash = c.DeviceSeq, t.log.own, t.log.seq+1, t.log.hash
			if _, err := t.Exec(ctx, updateOrigin, id, c.DeviceSeq, c.PrevHash, c.Seq); err != nil {
				return n, err
			}
			t.log.seq, t.log.hash = c.DeviceSeq, c.Hash()
			n++
		}
	}
	return n, err
}

// RenewSalvaged lets the store behind a connection continue as a new device incarnation,
// because the end of its change log may be lost. The caller has begun a transaction.
func RenewSalvaged(ctx context.Context, conn *sql.Conn) error {
	i := Incarnation{Device: NewID(), At: time.Now().UTC(), Reason: ReasonSalvaged}
	if err := conn.QueryRowContext(ctx, selectDevice).Scan(&i.Before); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	value, err := json.Marshal(i)
	if err == nil {
		_, err = conn.ExecContext(ctx, upsertMeta, metaIncarnation+i.Device, string(value))
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, upsertMeta, "device", i.Device)
	}
	return err
}

// CountReturned adds to the numbers of items pulled back from the hub, by device. It
// ignores devices that are not a former incarnation of this store.
func (t *Tx) CountReturned(ctx context.Context, items map[string]int64) error {
	if len(items) == 0 {
		return nil
	}
	all, err := t.Incarnations(ctx)
	for _, i := range all {
		if n := items[i.Before]; err == nil && n > 0 && i.Reason == ReasonBehind {
			i.Returned += n
			err = t.noteIncarnation(ctx, i)
		}
	}
	return err
}

// Incarnations returns the incarnations of the store after its first one, oldest first;
// nil if it has only that.
func (t *Tx) Incarnations(ctx context.Context) (out []Incarnation, err error) {
	texts, err := t.Texts(ctx, selectIncarnations)
	for _, text := range texts {
		var i Incarnation
		if json.Unmarshal([]byte(text), &i) == nil && i.Device != "" {
			out = append(out, i)
		}
	}
	return out, err
}

// Devices returns the devices of the store: the present one, then the former ones,
// newest first.
func (t *Tx) Devices(ctx context.Context) (out []string, err error) {
	own, err := t.device(ctx)
	for err == nil && own != "" && !slices.Contains(out, own) {
		out = append(out, own)
		var text string
		var i Incarnation
		err = t.Get(ctx, []any{&text}, selectFormer, own)
		if errors.Is(err, sql.ErrNoRows) {
			return out, nil
		}
		if err == nil && json.Unmarshal([]byte(text), &i) != nil {
			return out, nil
		}
		own = i.Before
	}
	return out, err
}
