package mail

import (
	"context"
	"time"

	"cairn/internal/redact"
	"cairn/internal/store"
)

// Config is what an Service is to know. The zero value of each field is usable.
type Config struct {
	Filter *redact.Filter // takes secrets out before anything is stored; nil for none

	NameMode  NameMode         // "" for Coerce
	Tokens    TokenMode        // "" for TokensOptional
	DiskLevel func() DiskLevel // how full the volumes are; nil: never full

	NoContactEnforcement bool          // only oneself and blocks are asked (mail §6)
	ContactWindow        time.Duration // 0 for 24 h
	NoFirstContact       bool          // with policy auto, nobody may write first
	RegisterRecipients   bool          // unknown recipients are registered
	MaxBody              int           // bytes; 0 for 1 MiB
	MaxAttachment        int           // bytes; 0 for 10 MiB
	MaxAttachments       int           // bytes; 0 for 20 MiB
	InlineImage          int           // bytes; 0 for 64 KiB
	AbsoluteAttachments  bool          // also from outside the project
	Idempotency          time.Duration // how long answers are kept; 0 for 24 h
	MaxTTL               time.Duration // of a reservation; 0 for 7 days
	Inactivity           time.Duration // of a holder, until a reservation is stale; 0 for 30 min
	Grace                time.Duration // for activity on its files; 0 for 15 min
	OrphanGrace          time.Duration // until reservations of an ended session are released; 0 for 5 min
	AckTTL, AckOverdue   time.Duration // 0 for 30 min and 1 h
	NoticeTokens         int           // 0 for 200
	NoticeInterval       time.Duration // between notices after tool calls; 0 for 30 s
	DataFolder           string        // never attached from; "" for none

	Archive Archive // where the commits of the projects' archives are

	// What happened lately to the files of a project, a product project id, since a
	// time: edits that hooks saw, and commits of the repository at root. nil for none.
	Edits   func(ctx context.Context, project string, since time.Time) ([]Touch, error)
	Commits func(ctx context.Context, root string, since time.Time) ([]Touch, error)
}

// Touch is a change to a file: its path in its worktree, with slashes.
type Touch struct {
	Path string
	At   time.Time
}

// NameMode says what becomes of a name that is no valid one (mail §4).
type NameMode string

// The ways to treat names.
const (
	Coerce     NameMode = "coerce"      // a generated one takes its place
	Strict     NameMode = "strict"      // it is refused
	AlwaysAuto NameMode = "always_auto" // every name is generated
)

// TokenMode says which agents need their token to be acted for (mail §4).
type TokenMode string

// The ways to treat tokens.
const (
	TokensOff      TokenMode = "off"
	TokensOptional TokenMode = "optional" // those that asked for one
	TokensEnforced TokenMode = "enforced" // all
)

// DiskLevel says how full the volumes of the store and of the archive are (mail §10.4).
type DiskLevel string

// The levels of disk pressure.
const (
	DiskOK       DiskLevel = "ok"
	DiskWarning  DiskLevel = "warning"
	DiskCritical DiskLevel = "critical" // the archive pauses
	DiskFatal    DiskLevel = "fatal"    // nothing new is taken
)

// Service is the mail of every project of a store. Its methods are the tools of the
// contract (mail §5); any number of goroutines and processes may call them.
//
// Errors are fault.Error with the codes of this room; details always hold
// "recoverable". A call that fails has stored nothing.
type Kernel struct {
	Store  *store.Store
	Config Config
}

// New returns the service of a store; nil for no store yet: then reading finds
// nothing, and writing is tried over nothing and leaves nothing behind.
func New(s *store.Store, c Config) *Kernel {
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

// Default gives a setting its default.
func Default[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Write runs fn in one transaction; a failed fn leaves nothing behind, and where
// there is no store yet any fn.
func (o *Kernel) Write(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if o.Store == nil {
		return Fault(store.Scratch(ctx, time.Now(), fn))
	}
	return Fault(o.Store.Write(ctx, store.Full, fn))
}

// Read runs fn in a read of the store. Without a store it runs fn on an empty one.
func (o *Kernel) Read(ctx context.Context, fn func(ctx context.Context, tx *store.Tx) error) error {
	if o.Store == nil {
		return Fault(store.Scratch(ctx, time.Unix(0, 0), fn))
	}
	return Fault(o.Store.Read(ctx, fn))
}
