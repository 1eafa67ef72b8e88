package main
import "context"
func (b *bench) search(ctx context.Context) error { return nil }
func (b *bench) commit(ctx context.Context) error { return nil }
func (b *bench) imports(ctx context.Context) error { return nil }
func (b *bench) size(ctx context.Context) error { return nil }
func (b *bench) replay(ctx context.Context) error { return nil }
