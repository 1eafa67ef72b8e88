package replica

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Paths of the hub, below its base URL. All but [PathHealth] require the header
// "Authorization: Bearer TOKEN".
const (
	PathPush    = "/v1/hub/push"    // POST [PushRequest], answered by [PushResponse]; level write
	PathPull    = "/v1/hub/pull"    // POST [PullRequest], answered by [PullResponse]; level read
	PathHeads   = "/v1/hub/heads"   // GET ?after&limit, answered by [HeadsResponse]; level read
	PathEntries = "/v1/hub/entries" // GET ?memory&entry or ?memory&limit&before&after&tag&session_id, answered by [EntriesResponse]; level read
	PathWhoami  = "/v1/hub/whoami"  // GET, answered by [Whoami]; any level
	PathHealth  = "/v1/health"      // GET, without a token
)

// Limits of one request (memories §13). A larger request is refused as a whole with 400 or
// 413, except that a larger Limit is lowered.
const (
	MaxPushBody   = 4 << 20 // bytes of a push
	MaxPushItems  = 1000    // items of a push; devices send 500
	MaxCursors    = 1000    // cursors of a pull
	MaxPullItems  = 1000    // items in the answer to a pull, over all streams
	MaxPullBytes  = 4 << 20 // documents in the answer to a pull; one item always fits
	MaxWaitMillis = 25_000  // how long a pull may wait for something new
	MaxHeads      = 1000    // heads of a page
	MaxEntries    = 1000    // entries of a read-through
	MaxKeyBytes   = 64      // of a hub key
	MaxDeviceID   = 64      // of a device id
)

// The kinds of items that are replicated, and the operations on them (memories §10.1).
const (
	KindVault   = "vault"
	KindMemory  = "memory"
	KindEntry   = "entry"
	KindContext = "context"

	OpPut    = "put"
	OpPatch  = "patch"
	OpDelete = "delete"
)

// Key is the hub key of an operation: lower-case hex of the SHA-256 of its method,
// canonical path and idempotency key, each on a separate line (memories §9). The hub keeps
// keys permanently, so it is always safe to send a key again.
func Key(method, path, idempotencyKey string) string {
	sum := sha256.Sum256([]byte(method + "\n" + path + "\n" + idempotencyKey))
	return hex.EncodeToString(sum[:])
}

// PushRequest sends changes of one device. Seq must rise within each stream, or the whole
// request is refused with 400. Streams may be mixed in any order.
type PushRequest struct {
	DeviceID string `json:"device_id"` // 1 to 64 printable ASCII characters: the device incarnation
	Items    []Item `json:"items"`     // 1 to 1000

	// Head is the newest change of the device when it sends. It is sent as ?device_seq=
	// and ?device_hash=, which an older hub ignores.
	Head DeviceHead `json:"-"`
}

// DeviceHead is a change of a device: its number there and its hash in the device's
// chain, 64 lower-case hex digits. Number 0 and "" mean none.
type DeviceHead struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Item is one change. Its document is what the change log holds, as JSON of at
// most 512 KiB:
//
//   - vault put: {key, vaultId, title, description, creationTime}
//   - memory put: {key, memoryId, vaultId, memoryType, title, description,
//     creationTime, vault: {vaultId, title, description, creationTime}, projectUids?};
//     projectUids, of a default memory, begins with the uid of its project, followed by
//     former uids of that project. A put of a memory that the hub knows sets its project
//   - entry put: {key, localId, entryId?, rawEntry, summary, tags, metadata, sessionId,
//     capturedTime, correctedEntryId?, correctionReason?, correctionTime?}; with an
//     entryId, which must be a UUIDv4, the hub uses that one if it is free
//   - entry patch: {key, entryId, tags?, summary?} or
//     {key, entryId, correctedEntryId, correctionReason, correctionTime}
//   - entry delete: {key, entryId}; memory delete, vault delete: {key}
//   - context put: {key, contextId, sessionId, markdown, updatedAt, baseId?, seenSeq?}: with a
//     baseId, "" for none, the context becomes the current one only if baseId is the
//     current one; else the hub keeps it as a version, and adds conflictWith, the id of
//     the current one
//
// A traceparent is kept, other members are not. Deletes require a token of level admin,
// the others level write.
type Item struct {
	Stream string          `json:"stream"` // id of the memory (kinds memory, entry, context) or of the vault (kind vault), as the hub knows it
	Seq    int64           `json:"seq"`    // of the change in the device's log, > 0
	Kind   string          `json:"kind"`
	ID     string          `json:"id"` // as in the device's log; the document decides
	Op     string          `json:"op"`
	Key    string          `json:"key"` // see [Key]; 1 to 64 printable ASCII characters
	Doc    json.RawMessage `json:"doc"`
}

// PushResponse has one result for each item, in the order of the items.
type PushResponse struct {
	Results []Result `json:"results"`

	// DeviceHead is the highest head that the hub had of this device before the push. If
	// the device's store does not have that change, another copy of it has sent it.
	// Missing if the hub has none, or is older.
	DeviceHead *DeviceHead `json:"device_head,omitempty"`
}

// Result is the outcome of one item. Status is
//
//   - 201: stored; EntryID (entries only), HubSeq, CreationTime (of entries; of contexts
//     the time that decides which is newer) are set;
//   - 200: stored before under this key, with the fields of that time; or a patch that is
//     stored now. Also a vault or memory that exists with this id and title;
//   - 204: deleted, now or before;
//   - 400, 403 (a delete by a token below admin), 404, 409, 413: refused permanently (memories §10.4). 409 already_exists
//     with details.existing_id: the title (or the proposed entryId, or the project of a
//     default memory) belongs to that id; 409 immutability_violation: a second correction, or a patch of a
//     corrected entry; 409 idempotency_mismatch: the key was used for another operation;
//     409 vault_not_empty;
//   - 424 (failed_dependency): an earlier item of the stream failed; send again;
//   - 503 (hub_unavailable): the database was busy or unavailable; send again later;
//   - 507 (disk_full): the hub cannot store anything until a person frees space there.
type Result struct {
	Seq          int64  `json:"seq"`
	Status       int    `json:"status"`
	EntryID      string `json:"entry_id,omitempty"`
	VaultID      string `json:"vault_id,omitempty"` // of a memory put: the vault it is filed in, which is the one proposed unless its title was known
	HubSeq       int64  `json:"hub_seq,omitempty"`
	CreationTime string `json:"creation_time,omitempty"` // RFC 3339 with nanoseconds, UTC: canonical (memories §10.2)
	Error        *Error `json:"error,omitempty"`         // set if and only if Status is not 2xx
}

// Error is the reason why an item was refused. A request that is refused as a whole has the
// envelope of fault.Envelope instead.
type Error struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details,omitempty"` // field; limit and actual; existing_id
}

// PullRequest asks for items after the cursors. If there are none, the hub waits up to
// WaitMillis for one in any of the streams.
type PullRequest struct {
	Cursors    []Cursor `json:"cursors"`           // 1 to 1000, each stream once
	Limit      int      `json:"limit,omitempty"`   // items over all streams; 0 or more than 1000 count as 1000
	WaitMillis int      `json:"wait_ms,omitempty"` // 0 to 25000; more counts as 25000

	// Catalogue is the version of the user's catalogue that the device has read, 0 for
	// none: the pull also ends when there is a newer one, and there may be no cursors.
	// It is sent as ?catalogue=, which a hub without versions ignores.
	Catalogue int64 `json:"-"`
}

// Cursor is the position up to which a stream was pulled: the hub_seq of the last item
// applied, 0 for none. For a cursor beyond the stream's head, after a backup of the hub was
// restored, there are no items; the response has it in Behind.
type Cursor struct {
	Stream string `json:"stream"`
	After  int64  `json:"after"`
}

// PullResponse has the streams with new items, in the order of the cursors. A stream that is
// unknown, or another user's, is omitted like one without new items.
type PullResponse struct {
	HubEpoch int64         `json:"hub_epoch"` // see [Whoami]
	Streams  []StreamItems `json:"streams"`   // [] when the time is up

	// Behind has the cursors beyond the head of their stream, each with the head in After,
	// 0 for a stream that the hub does not know: its database is older than what it has
	// confirmed. Older hubs omit it.
	Behind []Cursor `json:"behind,omitempty"`

	Catalogue int64 `json:"catalogue,omitempty"` // the version of the catalogue if it is newer than the request's
}

// StreamItems are the next items of a stream, ascending by HubSeq. Numbers may be missing:
// deleted items are omitted, except the deletion.
type StreamItems struct {
	Stream string       `json:"stream"`
	Items  []PulledItem `json:"items"`
	Next   int64        `json:"next"` // the cursor to go on with
	More   bool         `json:"more"` // there is more now; pull again at once
}

// PulledItem is one change as the hub stores it. Doc is the canonical form of an [Item]'s
// document: an entry put has entryId, memoryId and the canonical creationTime, and no
// localId; a memory put has its vault in vaultId and in vault; a context's updatedAt is the
// time that decides which is newer. ID is that of the vault, memory, entry or context. Key is
// the key of the push, by which a device recognises its own items.
type PulledItem struct {
	HubSeq int64           `json:"hub_seq"`
	Kind   string          `json:"kind"`
	ID     string          `json:"id"`
	Op     string          `json:"op"`
	Key    string          `json:"key"`
	Doc    json.RawMessage `json:"doc"`
	Device string          `json:"device,omitempty"` // the device incarnation that pushed it; older hubs omit it
}

// HeadsResponse is a page of the user's streams. Deleted ones are not listed.
type HeadsResponse struct {
	HubEpoch  int64  `json:"hub_epoch"`
	Catalogue int64  `json:"catalogue,omitempty"` // the version of the list, for [PullRequest]; older hubs omit it
	Heads     []Head `json:"heads"`
	Next      string `json:"next,omitempty"` // what ?after= continues with; absent on the last page
}

// Head is one stream, the number of its newest item (0: known only through another stream
// so far), and its vault or memory: exactly one of the two is set.
type Head struct {
	Stream  string  `json:"stream"`
	HeadSeq int64   `json:"head_seq"`
	Vault   *Vault  `json:"vault,omitempty"`
	Memory  *Memory `json:"memory,omitempty"`
}

// Vault is a vault of the catalogue.
type Vault struct {
	VaultID      string `json:"vaultId"`
	Title        string `json:"title"`
	Description  string `json:"description"`
	CreationTime string `json:"creationTime"`
}

// Memory is a memory of the catalogue.
type Memory struct {
	MemoryID     string `json:"memoryId"`
	VaultID      string `json:"vaultId"`
	MemoryType   string `json:"memoryType"`
	Title        string `json:"title"`
	Description  string `json:"description"`
	CreationTime string `json:"creationTime"`

	// The uid of the project whose default memory this is, [] without one. Null means a
	// hub of an earlier release, which does not know projects.
	ProjectUIDs []string `json:"projectUids"`
}

// EntriesResponse is the response to a read-through (memories §10.7): the current entries of
// a memory, newest first, as documents of entry puts with all patches applied. ?before=
// selects the newest older entries, ?after= the oldest newer ones; both are times in RFC
// 3339. ?entry= selects a single entry. A memory or entry that is unknown, deleted or
// another user's is 404 not_found.
type EntriesResponse struct {
	Entries []json.RawMessage `json:"entries"`
	More    bool              `json:"more"` // the memory has more in that direction
}

// Whoami describes the token of a request and the hub.
type Whoami struct {
	UserID   string `json:"user_id"`
	Device   string `json:"device,omitempty"` // the name the token was given
	Level    string `json:"level"`            // read, write or admin
	HubID    string `json:"hub_id"`           // of the hub's database, permanent; another id is another hub
	HubEpoch int64  `json:"hub_epoch"`        // rises when an older backup was restored: changes beyond the heads must be sent again (memories §13.2)

	// DeviceHead is the highest head that the hub has of the device in ?device=. Missing
	// if it has none, or is older.
	DeviceHead *DeviceHead `json:"device_head,omitempty"`
}
