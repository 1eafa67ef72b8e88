package main

import "context"

func (b *bench) showPages(ctx context.Context, m *mailServer, list []page) error { return nil }
