package memory

import (
	"context"

	"cairn/internal/memory/rules"
	"cairn/internal/store"
)

// MemoryArg checks a memory_id argument: a UUID or `default`.
func MemoryArg(text string) (string, error) {
	if text == DefaultMemory {
		return text, nil
	}
	id, err := rules.UUIDArg("memory_id", text)
	if err != nil && text != "" {
		return "", rules.Invalid("memory_id", "memory_id is neither a UUID nor %s", DefaultMemory)
	}
	return id, err
}

// ShardKey returns the key that determines the shard of a memory's jobs: its id, which is looked
// up for the default memory.
func (b *Kernel) ShardKey(ctx context.Context, c Caller, memory string) (key string, err error) {
	if err := c.CheckArgs(); err != nil || memory != DefaultMemory {
		return memory, err
	}
	key = memory + ":" + c.ProjectID + ":" + c.Place.Root // as long as the project does not exist
	err = b.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		s, err := b.Enter(ctx, tx, c, false)
		if err != nil {
			return err
		}
		if err := s.OpenDefault(ctx); err != nil {
			return err
		}
		if s.Memory.MemoryID != "" {
			key = s.Memory.MemoryID
		}
		return nil
	})
	return key, err
}

// ReadMemory runs fn over a memory of the acting user, after every job that was submitted for it
// earlier. A default memory that was never written is empty.
func (b *Kernel) ReadMemory(ctx context.Context, c Caller, memory string, fn func(ctx context.Context, s *CallTx) error) error {
	shard, err := b.ShardKey(ctx, c, memory)
	if err != nil {
		return err
	}
	var asked string // the stream that must be pulled first
	var owner string
	read := func(ctx context.Context, tx *store.Tx) error {
		s, err := b.Enter(ctx, tx, c, false)
		if err == nil {
			err = s.Open(ctx, memory)
		}
		if err != nil {
			return err
		}
		if asked == "" && b.Config.OnFirstRead != nil && s.User.IsJoined() && s.Memory.Exists && !s.Memory.subscribed {
			asked, owner = s.Memory.MemoryID, s.User.UserID
			return nil
		}
		return fn(ctx, s)
	}
	// The earlier jobs have run when an empty one has. The read does not occupy the shard (memories §8).
	if err = b.Jobs.Run(ctx, shard, func(context.Context) error { return nil }); err == nil {
		err = b.Read(ctx, read)
	}
	if err != nil || asked == "" {
		return err
	}
	b.Config.OnFirstRead(ctx, owner, asked)
	return b.Read(ctx, read)
}
