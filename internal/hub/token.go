package hub

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"cairn/internal/fault"
	"cairn/internal/hub/database"
	"cairn/internal/memory"
	"cairn/internal/memory/rules"
)

// Level is the permission of a token. Each level includes the lower ones.
type Level string

// The levels, from the lowest (memories §3).
const (
	LevelRead  Level = "read"  // pull
	LevelWrite Level = "write" // push, deletes aside
	LevelAdmin Level = "admin" // delete
)

// includes reports whether a level grants a required level.
func (l Level) includes(wanted Level) bool {
	order := []Level{LevelRead, LevelWrite, LevelAdmin}
	return slices.Index(order, l) >= slices.Index(order, wanted)
}

// Identity is the sender of a request.
type Identity struct {
	UserID string // a UUID: the tenant of all data that is read and written
	Device string // the token's device name, may be empty
	Level  Level
}

// Token describes a token. The token itself is shown once, when it is created.
type Token struct {
	ID       string    `json:"id"` // the first 12 characters of its hash
	UserID   string    `json:"user_id"`
	Device   string    `json:"device"`
	Level    Level     `json:"level"`
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`
	LastUsed string    `json:"last_used,omitempty"` // the day, in UTC
	Revoked  time.Time `json:"revoked,omitzero"`
}

// TokenArgs describe a new token.
type TokenArgs struct {
	UserID  string        // a UUID, or "new" to generate one
	Device  string        // up to 64 characters, may be empty
	Level   Level         // "" means admin: the user's own device
	Expires time.Duration // 0 for never
}

const (
	insertToken = `INSERT INTO hub_tokens (hash, tenant, device, level, created_ns, expires_ns, last_day, revoked_ns)
VALUES ($1, $2, $3, $4, $5, $6, '', 0)`
	tokenColumns  = `SELECT hash, tenant, device, level, created_ns, expires_ns, last_day, revoked_ns FROM hub_tokens`
	selectToken   = tokenColumns + ` WHERE hash = $1`
	selectTokens  = tokenColumns + ` ORDER BY created_ns, hash`
	selectLike    = tokenColumns + ` WHERE hash >= $1 AND hash < $2 LIMIT 2`
	useToken      = `UPDATE hub_tokens SET last_day = $2 WHERE hash = $1 AND last_day < $2`
	revokeToken   = `UPDATE hub_tokens SET revoked_ns = $2 WHERE hash = $1 AND revoked_ns = 0`
	tokenBytes    = 32
	tokenID       = 12
	maxDeviceName = 64
)

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// CreateToken creates a token of 256 random bits and stores only its SHA-256. Errors: Invalid
// with code usage for invalid arguments.
func (h *Hub) CreateToken(ctx context.Context, a TokenArgs) (t Token, secret string, err error) {
	usage := func(message string) (Token, string, error) {
		return t, "", fault.New(fault.Invalid, database.CodeUsage, message)
	}
	if a.Level == "" {
		a.Level = LevelAdmin
	}
	user, ok := rules.ParseID(a.UserID)
	switch {
	case a.UserID == "new":
		user = rules.NewID()
	case !ok:
		return usage("the user is neither a UUID nor new")
	}
	switch {
	case a.Level != LevelRead && a.Level != LevelWrite && a.Level != LevelAdmin:
		return usage("the level must be read, write or admin")
	case a.Expires < 0:
		return usage("a token cannot have expired already")
	case len([]rune(a.Device)) > maxDeviceName || strings.ContainsFunc(a.Device, unicode.IsControl):
		return usage("the device's name has more than 64 characters, or strange ones")
	}
	var raw [tokenBytes]byte
	_, _ = rand.Read(raw[:]) // never fails
	secret = base64.RawURLEncoding.EncodeToString(raw[:])
	now := h.clock().UTC()
	t = Token{ID: hashOf(secret)[:tokenID], UserID: user, Device: a.Device, Level: a.Level, Created: now}
	var expires int64
	if a.Expires > 0 {
		t.Expires = now.Add(a.Expires)
		expires = t.Expires.UnixNano()
	}
	_, err = h.db.Writing().Exec(ctx, insertToken, hashOf(secret), user, a.Device, string(a.Level), now.UnixNano(), expires)
	return t, secret, err
}

type tokenRow struct {
	hash    string
	token   Token
	expires int64
	revoked int64
}

func scanToken(scan func(...any) error) (r tokenRow, err error) {
	var level string
	var created int64
	err = scan(&r.hash, &r.token.UserID, &r.token.Device, &level, &created, &r.expires, &r.token.LastUsed, &r.revoked)
	if err != nil {
		return r, err
	}
	r.token.ID, r.token.Level, r.token.Created = r.hash[:tokenID], Level(level), time.Unix(0, created).UTC()
	if r.expires != 0 {
		r.token.Expires = time.Unix(0, r.expires).UTC()
	}
	if r.revoked != 0 {
		r.token.Revoked = time.Unix(0, r.revoked).UTC()
	}
	return r, nil
}

// Tokens lists all tokens, the oldest first, including revoked and expired ones.
func (h *Hub) Tokens(ctx context.Context) ([]Token, error) {
	tokens := []Token{}
	err := h.db.Reading().Each(ctx, selectTokens, nil, func(scan func(...any) error) (bool, error) {
		r, err := scanToken(scan)
		tokens = append(tokens, r.token)
		return true, err
	})
	return tokens, err
}

// Revoke revokes a token, selected by its id, or by 6 or more characters of its hash. Running
// hubs reject it within a minute. It is idempotent. Errors: NotFound if no token matches,
// Conflict if several match.
func (h *Hub) Revoke(ctx context.Context, id string) (Token, error) {
	id = strings.ToLower(id)
	if len(id) < 6 || strings.Trim(id, "0123456789abcdef") != "" {
		return Token{}, fault.New(fault.Invalid, database.CodeUsage, "a token's id has at least 6 characters of 0-9 and a-f").
			WithHint("`cairn hub token list` shows them")
	}
	var rows []tokenRow
	err := h.db.Writing().Each(ctx, selectLike, []any{id, id + "g"}, func(scan func(...any) error) (bool, error) {
		r, err := scanToken(scan)
		rows = append(rows, r)
		return true, err
	})
	switch {
	case err != nil:
		return Token{}, err
	case len(rows) == 0:
		return Token{}, fault.New(fault.NotFound, memory.CodeNotFound, "there is no token "+id).WithHint("`cairn hub token list` shows them")
	case len(rows) > 1:
		return Token{}, fault.New(fault.Conflict, "ambiguous", "several tokens begin with "+id).WithHint("give more of the id")
	}
	t := rows[0].token
	if rows[0].revoked == 0 {
		t.Revoked = h.clock().UTC()
		_, err = h.db.Writing().Exec(ctx, revokeToken, rows[0].hash, t.Revoked.UnixNano())
	}
	return t, err
}

// tokenMemory is how long a process caches a token, so that most requests need no query, and a
// revocation takes effect within a minute.
const tokenMemory = 30 * time.Second

// known caches the tokens that a process has accepted recently.
type known struct {
	mu   sync.Mutex
	rows map[string]knownToken
}

type knownToken struct {
	row  tokenRow
	read time.Time
}

// maxKnown bounds the cache; when it is full, it is emptied.
const maxKnown = 10_000

// authenticate returns the bearer of a token. Errors: Denied with code unauthorized if the
// token is unknown, expired or revoked.
func (h *Hub) authenticate(ctx context.Context, secret string) (Identity, error) {
	hash := hashOf(secret)
	h.known.mu.Lock()
	k, ok := h.known.rows[hash]
	h.known.mu.Unlock()
	if !ok || time.Since(k.read) > tokenMemory {
		row, found, err := h.readToken(ctx, hash)
		if err != nil {
			return Identity{}, err
		}
		if !found {
			return Identity{}, unauthorized()
		}
		k = knownToken{row, time.Now()}
		h.known.mu.Lock()
		if h.known.rows == nil || len(h.known.rows) >= maxKnown {
			h.known.rows = map[string]knownToken{}
		}
		h.known.rows[hash] = k
		h.known.mu.Unlock()
	}
	if k.row.revoked != 0 || k.row.expires != 0 && h.clock().UnixNano() >= k.row.expires {
		return Identity{}, unauthorized()
	}
	return Identity{UserID: k.row.token.UserID, Device: k.row.token.Device, Level: k.row.token.Level}, nil
}

func (h *Hub) readToken(ctx context.Context, hash string) (row tokenRow, found bool, err error) {
	s := h.db.Writing() // a replica may not have it yet
	if !h.db.Postgres {
		s = h.db.Reading()
	}
	err = s.Each(ctx, selectToken, []any{hash}, func(scan func(...any) error) (bool, error) {
		found = true
		row, err = scanToken(scan)
		return false, err
	})
	today := h.clock().UTC().Format(time.DateOnly)
	if err != nil || !found || row.revoked != 0 || row.token.LastUsed >= today {
		return row, found, err
	}
	if _, err := h.db.Writing().Exec(ctx, useToken, hash, today); err != nil {
		h.log.WarnContext(ctx, "the day of a token's use is not noted", "error", err)
	}
	return row, found, nil
}

func unauthorized() error {
	return fault.New(fault.Denied, "unauthorized", "the token is missing, unknown, expired or revoked").
		WithHint("send Authorization: Bearer TOKEN; `cairn hub token create` makes one")
}
