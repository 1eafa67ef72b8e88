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
	"cairn/internal/memory/memories"
	"cairn/internal/memory/vaults"
	"cairn/internal/store/disk"
)

// confirmTime is how long a reset waits for the hub's confirmation.
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

// identity is a user that a reset has created.
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
			return invalid("users", "a user has no name or a duplicate name")
		}
		known[name] = true
	}
	if a.Hub != "" && a.HubControl == "" {
		return invalid("hub_control", "hub requires hub_control, for its tokens")
	}
	for _, v := range a.Vaults {
		if !known[v.Owner] {
			return invalid("vaults", "the owner of vault "+v.Name+" is not one of the users")
		}
	}
	return nil
}

// reset empties the store and the hub and creates users, vaults and memories. The first user
// is the device's own. It first disarms all crash points, except the one that only a new
// store passes.
func (d *Device) reset(ctx context.Context, a resetArgs) (any, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	crashpoint.Disarm(func(name string) bool { return name != crashpoint.MidMigration })
	if err := d.restart(ctx, d.wipe); err != nil {
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
	err = c.Memories().Write(ctx, memory.Caller{}, func(ctx context.Context, b *memories.Service, _ memory.Caller) error {
		for _, do := range []func(context.Context, *cairn.Cairn, *memories.Service, resetArgs) error{out.makeUsers, out.join, out.makeMemories} {
			if err := do(ctx, c, b, a); err != nil {
				return err
			}
		}
		return out.confirmed(ctx, b)
	})
	return out, err
}

// wipe deletes the store and the state of the test. Files that other processes lock stay,
// and so do the settings and the owner's token.
func (d *Device) wipe() error {
	files, err := disk.Files(d.config.DB)
	for _, f := range files {
		if f.Role != disk.Lock {
			err = errors.Join(err, os.Remove(f.Path))
		}
	}
	left, gerr := filepath.Glob(filepath.Join(d.config.Dir, "hub-token-*"))
	for _, path := range append(left, filepath.Join(d.config.Dir, "http-tokens"), filepath.Join(d.config.Dir, "archive")) {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return errors.Join(err, gerr, d.kept.clear())
}

func (f *fresh) makeUsers(ctx context.Context, c *cairn.Cairn, b *memories.Service, a resetArgs) error {
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

// join empties the hub and joins it, with the local user ids.
func (f *fresh) join(ctx context.Context, c *cairn.Cairn, _ *memories.Service, a resetArgs) error {
	if a.HubControl == "" {
		return nil
	}
	ids := []string{}
	for _, u := range f.Users {
		ids = append(ids, u.UserID)
	}
	var created struct {
		Tokens map[string]string `json:"tokens"`
	}
	if err := Call(ctx, http.MethodPost, a.HubControl+"/test/reset", map[string]any{"users": ids}, &created); err != nil {
		return err
	}
	for _, id := range ids {
		if a.Hub == "" {
			break
		}
		_, _, err := c.Replication().Join(ctx, cairn.JoinArgs{URL: a.Hub, Token: created.Tokens[id], User: id, Upload: true, Insecure: true})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fresh) makeMemories(ctx context.Context, _ *cairn.Cairn, b *memories.Service, a resetArgs) error {
	for _, v := range a.Vaults {
		who := memory.Caller{User: f.Users[v.Owner].UserID}
		made, _, err := b.CreateVault(ctx, who, vaults.NewVault{Title: v.Name})
		if err != nil {
			return err
		}
		f.Vaults[v.Name] = made.VaultID
		for _, name := range v.Memories {
			m, _, err := b.CreateMemory(ctx, who, vaults.NewMemory{VaultID: made.VaultID, Title: name})
			if err != nil {
				return err
			}
			f.Memories[name] = m.MemoryID
		}
	}
	return nil
}

// confirmed waits until the hub has confirmed everything.
func (f *fresh) confirmed(ctx context.Context, b *memories.Service) error {
	for _, made := range []map[string]string{f.Vaults, f.Memories} {
		for _, id := range made {
			if err := b.WaitSynced(ctx, id, confirmTime); err != nil {
				return err
			}
		}
	}
	return nil
}

// configure restarts the server with new settings, which replace the old ones. The settings
// are the members of the body, or of its member settings.
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
			return nil, invalid(key, key+" must be a text, a number or a boolean")
		}
	}
	if err := d.validate(settings); err != nil {
		return nil, err
	}
	err := d.restart(ctx, func() error { return d.kept.change(func(l *lasting) { l.Settings = settings }) })
	return map[string]any{"settings": settings}, err
}

// validate rejects settings with which no server would start.
func (d *Device) validate(settings map[string]string) error {
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
			err = invalid(key, "unknown setting "+key)
		}
	}
	return errors.Join(err, c.Close())
}

// Call sends a verb to a control listener and reads the response into out, which may be a
// json.RawMessage. A nil body sends none. Errors are those of the response.
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
	var envelope fault.Envelope
	_ = json.Unmarshal(data, &envelope) // other data has no code
	kinds := map[int]fault.Kind{
		http.StatusBadRequest: fault.Invalid, http.StatusForbidden: fault.Denied, http.StatusNotFound: fault.NotFound,
		http.StatusConflict: fault.Conflict, http.StatusServiceUnavailable: fault.Unavailable, http.StatusGatewayTimeout: fault.Unavailable,
	}
	return &fault.Error{
		Kind: kinds[w.StatusCode], Code: envelope.Error.Code, Message: envelope.Error.Message, Hint: envelope.Error.Hint, Details: envelope.Error.Details,
	}
}
