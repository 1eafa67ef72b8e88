package mail

import (
	"context"
	"time"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config configures a Kernel. The zero value of each field is usable.
type Config struct {
	Filter *redact.Filter // removes secrets before anything is stored; nil for no filter

	NameMode  NameMode         // "" for Coerce
	Tokens    TokenMode        // "" for TokensOptional
	DiskLevel func() DiskLevel // disk pressure of the volumes; nil means always DiskOK

	NoContactEnforcement bool          // within a project, only blocks are enforced (mail §6)
	ContactWindow        time.Duration // 0 for 24 h
	NoFirstContact       bool          // policy auto does not permit a first message
	RegisterRecipients   bool          // unknown recipients are registered automatically
	MaxBody              int           // bytes; 0 for 1 MiB
	MaxAttachment        int           // bytes; 0 for 10 MiB
	MaxAttachments       int           // bytes; 0 for 20 MiB
	InlineImage          int           // bytes; 0 for 64 KiB
	AbsoluteAttachments  bool          // files outside the project may be attached, too
	Idempotency          time.Duration // how long results are kept; 0 for 24 h
	MaxTTL               time.Duration // of a reservation; 0 for 7 days
	Inactivity           time.Duration // until the reservation of an inactive holder is stale; 0 for 30 min
	Grace                time.Duration // for activity on the reserved files; 0 for 15 min
	OrphanGrace          time.Duration // until reservations of an ended session are released; 0 for 5 min
	AckTTL, AckOverdue   time.Duration // 0 for 30 min and 1 h
	NoticeTokens         int           // 0 for 200
	NoticeInterval       time.Duration // between notices after tool calls; 0 for 30 s
	DataFolder           string        // files below it are never attached; "" for none

	MediaType func(data []byte) string // names the type of attached data; nil: always application/octet-stream

	Archive Archive // access to the commits of the projects' archives

	// Edits and Commits return the changes to files since a time: edits of a project, seen by
	// hooks, and commits of the repository at root. project is a product project id. nil for
	// none.
	Edits   func(ctx context.Context, project string, since time.Time) ([]Touch, error)
	Commits func(ctx context.Context, root string, since time.Time) ([]Touch, error)
}

// Touch is a change to a file. Path is relative to its worktree, with slashes.
type Touch struct {
	Path string
	At   time.Time
}

// NameMode decides how an invalid agent name is handled (mail §4).
type NameMode string

// The name modes.
const (
	Coerce     NameMode = "coerce"      // it is replaced by a generated name
	Strict     NameMode = "strict"      // it is refused
	AlwaysAuto NameMode = "always_auto" // every name is generated
)

// TokenMode decides which agents require their token (mail §4).
type TokenMode string

// The token modes.
const (
	TokensOff      TokenMode = "off"
	TokensOptional TokenMode = "optional" // agents that requested a token
	TokensEnforced TokenMode = "enforced" // all agents
)

// DiskLevel is the disk pressure on the volumes of the store and of the archive (mail §10.4).
type DiskLevel string

// The levels of disk pressure.
const (
	DiskOK       DiskLevel = "ok"
	DiskWarning  DiskLevel = "warning"
	DiskCritical DiskLevel = "critical" // the archive pauses
	DiskFatal    DiskLevel = "fatal"    // no new content is accepted
)

// Kernel is the mail of all projects of a store, shared by the packages of mail (mail §5). It
// is safe for concurrent use by goroutines and processes.
//
// Errors are fault.Error with the codes of this package. Their details always contain
// "recoverable". A call that fails stores nothing.
type Kernel struct {
	Store  *store.Store
	Config Config
}

// New returns the kernel of a store. A nil store means that none exists yet: reads find
// nothing, and writes run on an empty store that is then discarded.
func New(s *store.Store, c Config) *Kernel {
	if c.MediaType == nil {
		c.MediaType = func([]byte) string { return "application/octet-stream" }
	}
	Default(&c.NameMode, Coerce)
	Default(&c.Tokens, TokensOptional)
	Default(&c.ContactWindow, 24*time.Hour)
	Default(&c.MaxBody, 1<<20)
	Default(&c.MaxAttachment, 10<<20)
	Default(&c.MaxAttachments, 20<<20)
	Default(&c.InlineImage, 64<<10)
	Default(&c.Idempotency, 24*time.Hour)
	Default(&c.MaxTTL, 7*24*time.Hour)
	Default(&c.Inactivity, 30*time.Minute)
	Default(&c.Grace, 15*time.Minute)
	Default(&c.OrphanGrace, 5*time.Minute)
	Default(&c.AckTTL, 30*time.Minute)
	Default(&c.AckOverdue, time.Hour)
	Default(&c.NoticeTokens, 200)
	Default(&c.NoticeInterval, 30*time.Second)
	return &Kernel{Store: s, Config: c}
}

// Default sets a field that has its zero value to a default.
func Default[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Write runs fn in one transaction. If fn fails, nothing is stored. Without a store, fn runs
// on an empty one and nothing is stored either.
func (o *Kernel) Write(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if o.Store == nil {
		return Fault(store.Scratch(ctx, time.Now(), fn))
	}
	return Fault(o.Store.Write(ctx, store.Full, fn))
}

// Read runs fn in a read of the store. Without a store, fn runs on an empty one.
func (o *Kernel) Read(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if o.Store == nil {
		return Fault(store.Scratch(ctx, time.Unix(0, 0), fn))
	}
	return Fault(o.Store.Read(ctx, fn))
}
