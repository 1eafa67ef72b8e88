package cairn

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/repair"
	"cairn/internal/store"
)

// Salvage replaces a damaged store by what can still be read of it; see
// repair.Salvage, whose errors it returns. It works with broken settings too, of
// which only the place of the key matters: without them store.key_file is not known.
// An encrypted store without a key that fits is store.CodeKey (Unavailable).
func Salvage(ctx context.Context, c Config, progress func(what string)) (store.Salvaged, error) {
	c = withDB(c)
	k, _ := openAnyway(c)
	state, key, err := k.keyState()
	if err != nil {
		return store.Salvaged{}, err
	}
	if state.State != KeyPlain && state.State != KeyFits {
		return store.Salvaged{}, fault.New(fault.Unavailable, store.CodeKey, state.Why).WithHint(store.KeyPlaces)
	}
	return repair.Salvage(ctx, store.SalvageConfig{Path: c.DB, Key: key, Wait: c.Wait, Clock: c.Clock, Progress: progress})
}
