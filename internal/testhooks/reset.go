//go:build testhooks

package testhooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cairn"
	"cairn/internal/crashpoint"
	"cairn/internal/fault"
	"cairn/internal/httpapi"
	"cairn/internal/memory"
	"cairn/internal/store"
)

// confirmTime is how long a reset waits for the hub to confirm what it has made.
const confirmTime = 30 * time.Second

type resetArgs struct {
	Hub        string   `json:"hub"`
	HubControl string   `json:"hub_control"`
	Users      []string `json:"users"`
	Vaults     []struct {
		Name     string   `json:"name"`
		Owner    string   `json:"owner"`
		Memories []string `json:"memories"`
	} `json:"vaults"`
}

// identity is a user that a reset has made.
type identity struct {
	UserID string `json:"user_id"`
	Token  string `json:"token"`
}

type fresh struct {
	Users    map[string]identity `json:"users"`
	Vaults   map[string]string   `json:"vaults"`
	Memories map[string]string   `json:"memories"`
}

func (a resetArgs) check() error {
	known := map[string]bool{}
	for _, name := range a.Users {
		if name == "" || known[name] {
			return invalid("users", "a user has no name, or another's")
		}
		known[name] = true
	}
	if a.Hub != "" && a.HubControl == "" {
		return invalid("hub_control", "a hub that is to be joined needs hub_control, for its tokens")
	}
	for _, v := range a.Vaults {
		if !known[v.Owner] {
			return invalid("vaults", "the owner of vault "+v.Name+" is none of the users")
		}
	}
	return nil
}

// reset empties the store and the hub and makes users, vaults and memories. The first
// user is the device's own. Armed points go first, but for the one that only a new
// store passes.
func (d *Device) reset(ctx context.Context, a resetArgs) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	crashpoint.Disarm(func(name string) bool { return name != crashpoint.MidMigration })
	if err := d.again(ctx, d.wipe); err != nil {
		return nil, err
	}
	c, err := d.cairn()
	if err == nil {
		_, err = c.Store(ctx)
	}
	if err != nil {
		return nil, err
	}
	out := fresh{map[string]identity{}, map[string]string{}, map[string]string{}}
	err = c.Memories().Write(ctx, memory.Caller{}, func(ctx context.Context, b *memory.Service, _ memory.Caller) error {
		for _, do := range []func(context.Context, *cairn.Cairn, *memory.Service, resetArgs) error{out.makeUsers, out.join, out.makeMemories} {
			if err := do(ctx, c, b, a); err != nil {
				return err
			}
		}
		return out.confirmed(ctx, b)
	})
	return out, err
}

// wipe takes away what belongs to the store, and what a test has set. Files that other
// processes lock stay, and so do the settings and the owner's token.
func (d *Device) wipe() error {
	files, err := store.Files(d.config.DB)
	for _, f := range files {
		if f.Role != store.Lock {
			err = errors.Join(err, os.Remove(f.Path))
		}
	}
	left, gerr := filepath.Glob(filepath.Join(d.config.Dir, "hub-token-*"))
	for _, path := range append(left, filepath.Join(d.config.Dir, "http-tokens"), filepath.Join(d.config.Dir, "archive")) {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return errors.Join(err, gerr, d.kept.clear())
}

func (f *fresh) makeUsers(ctx context.Context, c *cairn.Cairn, b *memory.Service, a resetArgs) error {
	for i, name := range a.Users {
		make := b.AddUser
		if i == 0 {
			make = func(ctx context.Context) (memory.User, error) { return b.Whoami(ctx, memory.Caller{}) }
		}
		u, err := make(ctx)
		if err != nil {
			return err
		}
		_, token, err := httpapi.CreateToken(c.Dir(), httpapi.TokenArgs{Name: name, UserID: u.UserID}, c.Now())
		if err != nil {
			return err
		}
		f.Users[name] = identity{u.UserID, token}
	}
	return nil
}

// join empties the hub and joins it, under the ids of here.
func (f *fresh) join(ctx context.Context, c *cairn.Cairn, _ *memory.Service, a resetArgs) error {
	if a.HubControl == "" {
		return nil
	}
	ids := []string{}
	for _, u := range f.Users {
		ids = append(ids, u.UserID)
	}
	var told struct {
		Tokens map[string]string `json:"tokens"`
	}
	if err := Call(ctx, http.MethodPost, a.HubControl+"/test/reset", map[string]any{"users": ids}, &told); err != nil {
		return err
	}
	for _, id := range ids {
		if a.Hub == "" {
			break
		}
		_, _, err := c.Replication().Join(ctx, cairn.JoinArgs{URL: a.Hub, Token: told.Tokens[id], User: id, Upload: true, Insecure: true})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fresh) makeMemories(ctx context.Context, _ *cairn.Cairn, b *memory.Service, a resetArgs) error {
	for _, v := range a.Vaults {
		who := memory.Caller{User: f.Users[v.Owner].UserID}
		made, _, err := b.CreateVault(ctx, who, memory.NewVault{Title: v.Name})
		if err != nil {
			return err
		}
		f.Vaults[v.Name] = made.VaultID
		for _, name := range v.Memories {
			m, _, err := b.CreateMemory(ctx, who, memory.NewMemory{VaultID: made.VaultID, Title: name})
			if err != nil {
				return err
			}
			f.Memories[name] = m.MemoryID
		}
	}
	return nil
}

// confirmed waits for the hub.
func (f *fresh) confirmed(ctx context.Context, b *memory.Service) error {
	for _, made := range []map[string]string{f.Vaults, f.Memories} {
		for _, id := range made {
			if err := b.WaitSynced(ctx, id, confirmTime); err != nil {
				return err
			}
		}
	}
	return nil
}

// configure restarts the server with settings, which replace those of before: the
// members of the body, or of its member settings.
func (d *Device) configure(ctx context.Context, a map[string]any) (any, error) {
	if inner, ok := a["settings"].(map[string]any); ok && len(a) == 1 {
		a = inner
	}
	settings := map[string]string{}
	for key, v := range a {
		if !strings.Contains(key, ".") {
			key = "memory." + key
		}
		switch v := v.(type) {
		case string, bool:
			settings[key] = fmt.Sprint(v)
		case float64:
			settings[key] = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			return nil, invalid(key, key+" is no text, number or truth")
		}
	}
	if err := d.sound(settings); err != nil {
		return nil, err
	}
	err := d.again(ctx, func() error { return d.kept.change(func(l *lasting) { l.Settings = settings }) })
	return map[string]any{"settings": settings}, err
}

// sound refuses settings that no server would start with.
func (d *Device) sound(settings map[string]string) error {
	config, asked := d.config, map[string]bool{}
	config.Setting = func(key string) string {
		if asked[key] = true; settings[key] != "" || d.config.Setting == nil {
			return settings[key]
		}
		return d.config.Setting(key)
	}
	c, err := cairn.Open(config)
	if err != nil {
		return invalid("settings", fault.As(err).Message)
	}
	for key := range settings {
		if !asked[key] {
			err = invalid(key, "there is no setting "+key)
		}
	}
	return errors.Join(err, c.Close())
}

// Call sends a verb to a control listener and reads its answer into out, which may be a
// json.RawMessage. A body of nil is none. Errors are those that were told.
func Call(ctx context.Context, method, url string, body, out any) error {
	var sent io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, sent)
	if err != nil {
		return err
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, memory.CodeHubUnavailable, err.Error())
	}
	defer w.Body.Close()
	data, err := io.ReadAll(w.Body)
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, memory.CodeHubUnavailable, err.Error())
	}
	if w.StatusCode == http.StatusOK {
		return json.Unmarshal(data, out)
	}
	var told fault.Envelope
	_ = json.Unmarshal(data, &told) // what is no envelope has no code
	kinds := map[int]fault.Kind{
		http.StatusBadRequest: fault.Invalid, http.StatusForbidden: fault.Denied, http.StatusNotFound: fault.NotFound,
		http.StatusConflict: fault.Conflict, http.StatusServiceUnavailable: fault.Unavailable, http.StatusGatewayTimeout: fault.Unavailable,
	}
	return &fault.Error{
		Kind: kinds[w.StatusCode], Code: told.Error.Code, Message: told.Error.Message, Hint: told.Error.Hint, Details: told.Error.Details,
	}
}
