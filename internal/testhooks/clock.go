//go:build testhooks

package testhooks

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ClockState is what a clock shows, and how it goes.
type ClockState struct {
	Now    time.Time `json:"now"`
	Frozen bool      `json:"frozen"`
	Real   bool      `json:"real"` // the system's, untouched
}

// clockArgs are {set, frozen}, {advance_ms} or {real:true}.
type clockArgs struct {
	Set       *time.Time `json:"set"`
	Frozen    *bool      `json:"frozen"`
	AdvanceMS *int64     `json:"advance_ms"`
	Real      bool       `json:"real"`
}

// kept is what outlasts a crash, in a file.
type kept struct {
	path string

	mu sync.Mutex
	lasting
}

type lasting struct {
	Offset   time.Duration     `json:"offset_ns"`        // of a clock that runs, from the system's
	Frozen   *time.Time        `json:"frozen,omitempty"` // what a clock that stands shows
	Settings map[string]string `json:"settings,omitempty"`
}

// open reads the file for a store, or hub's database, at a path.
func open(store string) (*kept, error) {
	k := &kept{path: filepath.Join(filepath.Dir(store), "test-hooks-"+filepath.Base(store)+".json")}
	data, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &k.lasting)
	}
	return k, err
}

// Now is the time by the clock.
func (k *kept) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now()
}

func (k *kept) now() time.Time {
	if k.Frozen != nil {
		return *k.Frozen
	}
	return time.Now().Add(k.Offset)
}

func (k *kept) clock() ClockState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return ClockState{Now: k.now().UTC(), Frozen: k.Frozen != nil, Real: k.Frozen == nil && k.Offset == 0}
}

// settings are those that a test has set, by key; never nil.
func (k *kept) settings() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[string]string{}
	maps.Copy(out, k.Settings)
	return out
}

// change changes what is kept, on the disk too.
func (k *kept) change(do func(l *lasting)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	do(&k.lasting)
	data, err := json.Marshal(k.lasting)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(k.path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(k.path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(k.path+".new", k.path)
}

// clear forgets it all, and the file.
func (k *kept) clear() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lasting = lasting{}
	if err := os.Remove(k.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// setClock does what clockArgs say.
func (k *kept) setClock(a clockArgs) (any, error) {
	given := 0
	for _, is := range []bool{a.Set != nil || a.Frozen != nil, a.AdvanceMS != nil, a.Real} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("set", "give one of set (with frozen), advance_ms and real")
	}
	err := k.change(func(l *lasting) {
		now, frozen := k.now(), l.Frozen != nil
		switch {
		case a.Real:
			l.Offset, l.Frozen = 0, nil
			return
		case a.AdvanceMS != nil:
			now = now.Add(time.Duration(*a.AdvanceMS) * time.Millisecond)
		case a.Set != nil:
			now, frozen = *a.Set, false
		}
		if a.Frozen != nil {
			frozen = *a.Frozen
		}
		if l.Offset, l.Frozen = time.Until(now), nil; frozen {
			l.Frozen = &now
		}
	})
	return k.clock(), err
}
