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

// ClockState is the state of a test clock.
type ClockState struct {
	Now    time.Time `json:"now"`
	Frozen bool      `json:"frozen"`
	Real   bool      `json:"real"` // the system's clock
}

// clockArgs are {set, frozen}, {advance_ms} or {real:true}.
type clockArgs struct {
	Set       *time.Time `json:"set"`
	Frozen    *bool      `json:"frozen"`
	AdvanceMS *int64     `json:"advance_ms"`
	Real      bool       `json:"real"`
}

// savedState is the state that survives a crash. It is stored in a file.
type savedState struct {
	path string

	mu sync.Mutex
	lasting
}

type lasting struct {
	Offset   time.Duration     `json:"offset_ns"`        // difference between a running clock and the system's
	Frozen   *time.Time        `json:"frozen,omitempty"` // the time of a frozen clock, else nil
	Settings map[string]string `json:"settings,omitempty"`
}

// open reads the saved state for the store or hub database at a path.
func open(store string) (*savedState, error) {
	k := &savedState{path: filepath.Join(filepath.Dir(store), "test-hooks-"+filepath.Base(store)+".json")}
	data, err := os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &k.lasting)
	}
	return k, err
}

// Now returns the time of the clock.
func (k *savedState) Now() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.now()
}

func (k *savedState) now() time.Time {
	if k.Frozen != nil {
		return *k.Frozen
	}
	return time.Now().Add(k.Offset)
}

func (k *savedState) clock() ClockState {
	k.mu.Lock()
	defer k.mu.Unlock()
	return ClockState{Now: k.now().UTC(), Frozen: k.Frozen != nil, Real: k.Frozen == nil && k.Offset == 0}
}

// settings returns the settings of a test by key; never nil.
func (k *savedState) settings() map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[string]string{}
	maps.Copy(out, k.Settings)
	return out
}

// change changes the state, also on the disk.
func (k *savedState) change(do func(l *lasting)) error {
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

// clear deletes the state and its file.
func (k *savedState) clear() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lasting = lasting{}
	if err := os.Remove(k.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// setClock sets the clock.
func (k *savedState) setClock(a clockArgs) (any, error) {
	given := 0
	for _, is := range []bool{a.Set != nil || a.Frozen != nil, a.AdvanceMS != nil, a.Real} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, invalid("set", "requires one of set (with frozen), advance_ms and real")
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
