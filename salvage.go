package cairn

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/repair"
	"cairn/internal/store"
	"cairn/internal/store/salvage"
	"cairn/internal/workspace"
)

// Salvage replaces a damaged store by a new one with everything that is still readable; see
// repair.Salvage, whose errors it returns. It also works with invalid settings; then
// store.key_file is unknown. An encrypted store without a matching key is store.CodeKey
// (Unavailable).
func Salvage(ctx context.Context, c Config, progress func(what string)) (salvage.Report, error) {
	c = c.WithDB()
	k, _ := openDespiteSettings(c)
	state, key, err := k.KeyState()
	if err != nil {
		return salvage.Report{}, err
	}
	if state.State != workspace.KeyPlain && state.State != workspace.KeyFits {
		return salvage.Report{}, fault.New(fault.Unavailable, store.CodeKey, state.Why).WithHint(store.KeyPlaces)
	}
	return repair.Salvage(ctx, salvage.Config{Path: c.DB, Key: key, Wait: c.Wait, Clock: c.Clock, Progress: progress})
}
