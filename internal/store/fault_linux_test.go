package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/store"
	"cairn/internal/store/encryption"
	"cairn/internal/store/follow"
	"cairn/internal/store/salvage"
	"cairn/internal/store/storetest"
)

// runLinuxChild runs the children that exist only on Linux.
func runLinuxChild(name string, o order) error {
	switch name {
	case "modes":
		return modes(o)
	case "without rights":
		return withoutRights(o)
	}
	return errors.New("no such child")
}

// tmpfs mounts a small file system for the test, or skips it.
func tmpfs(t *testing.T, size string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("cairn", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill uses up the space of a folder's volume except for the given bytes.
func fill(t testing.TB, dir string, leave int64) (free func()) {
	t.Helper()
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "filler")
	if err := os.WriteFile(path, make([]byte, int64(st.Bavail)*st.Bsize-leave), 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFullVolumeStoresNothingHalfAndPasses(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "4m")
	path := filepath.Join(dir, "data", "cairn.db")
	s, err := open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	storetest.MustWrite(t, s, "before")
	free := fill(t, dir, 256<<10)
	stored := []string{"before"}
	for n := 0; ; n++ {
		id := fmt.Sprintf("%d-%s", n, strings.Repeat("x", 9000))
		err := storetest.Write(t.Context(), s, store.Sync(n%2), id, id+"+")
		if err == nil {
			stored = append(stored, id, id+"+")
			continue
		}
		storetest.ExpectCode(t, err, store.CodeFull)
		break
	}
	storetest.ExpectIDs(t, s, stored...)
	for range 3 {
		storetest.ExpectCode(t, s.Write(t.Context(), store.Full, big), store.CodeFull)
	}
	storetest.ExpectIDs(t, s, stored...)
	free()
	storetest.MustWrite(t, s, "after")
	storetest.ExpectIDs(t, s, append(stored, "after")...)
	storetest.Closed(t, s)
	storetest.Check(t, path)
}

func TestStoreOnAFullVolumeIsMadeOnceThereIsSpace(t *testing.T) {
	t.Parallel()
	for _, leave := range []int64{0, 4 << 10, 8 << 10, 24 << 10, 64 << 10, 100 << 10} {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			t.Parallel()
			dir := tmpfs(t, "1m")
			path := filepath.Join(dir, "data", "cairn.db")
			free := fill(t, dir, leave)
			s, err := open(t.Context(), store.Config{Path: path})
			if err == nil {
				storetest.Closed(t, s)
				t.Fatal("it was made in no space")
			}
			storetest.ExpectCode(t, err, store.CodeFull)
			free()
			storetest.MustWrite(t, storetest.Open(t, store.Config{Path: path}), "a")
		})
	}
}

func TestExistingStoreOnAFullVolumeCanBeRead(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "2m")
	path := filepath.Join(dir, "data", "cairn.db")
	s, err := open(t.Context(), store.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	storetest.MustWrite(t, s, "a")
	storetest.Closed(t, s)
	free := fill(t, dir, 0)
	s, err = open(t.Context(), store.Config{Path: path})
	if err == nil {
		storetest.ExpectIDs(t, s, "a")
		storetest.ExpectCode(t, storetest.Write(t.Context(), s, store.Full, "b"), store.CodeFull)
		storetest.Closed(t, s)
	} else { // no space even for SQLite's shared memory file
		storetest.ExpectCode(t, err, store.CodeFull)
	}
	free()
	storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path}), "a")
}

// A salvage without space, or without permission to write, changes nothing.
func TestSalvageOnAFullVolumeLeavesEverything(t *testing.T) {
	t.Parallel()
	for _, leave := range []int64{0, 16 << 10, 200 << 10, 900 << 10} {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			t.Parallel()
			dir := tmpfs(t, "12m")
			path := filepath.Join(dir, "data", "cairn.db")
			broken := content(t, populated(t))
			clear(broken[:pageSize])
			place(t, path, broken)
			free := fill(t, dir, leave)
			before := entries(t, filepath.Dir(path))
			_, err := salvage.Run(t.Context(), salvage.Config{Path: path})
			storetest.ExpectCode(t, err, store.CodeFull)
			expectUnchanged(t, path, broken)
			for _, name := range entries(t, filepath.Dir(path)) {
				if !slices.Contains(before, name) && name != "cairn.db-lock" {
					t.Errorf("%s was left behind", name)
				}
			}
			free()
			salvaged(t, path)
		})
	}
}

func TestEncryptingOnAFullVolumeLeavesThePlainStore(t *testing.T) {
	plainOnly(t)
	for _, leave := range []int64{0, 8 << 10, 64 << 10, 150 << 10, 300 << 10} {
		t.Run(fmt.Sprint(leave), func(t *testing.T) {
			t.Parallel()
			dir := tmpfs(t, "2m")
			path := filepath.Join(dir, "data", "cairn.db")
			s, err := store.Open(t.Context(), store.Config{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			storetest.MustWrite(t, s, "a", "b")
			storetest.Closed(t, s)
			free := fill(t, dir, leave)
			_, err = encryption.Encrypt(t.Context(), encryption.Config{Path: path, Key: keyOf(1)})
			if err == nil {
				if leave < 150<<10 {
					t.Error("it was encrypted in no space")
				}
			} else {
				storetest.ExpectCode(t, err, store.CodeFull)
			}
			free()
			if err != nil {
				for _, name := range names(t, filepath.Dir(path)) {
					if strings.Contains(name, "cipher") || strings.Contains(name, "encrypt") {
						t.Errorf("%s is left", name)
					}
				}
				encryptNow(t, path, keyOf(1))
			}
			storetest.ExpectIDs(t, storetest.Open(t, store.Config{Path: path, Key: keyOf(1)}), "a", "b")
		})
	}
}

// modes creates a store under a umask and returns the modes of all its files.
func modes(o order) error {
	syscall.Umask(o.Mask)
	ctx := context.Background()
	s, err := open(ctx, store.Config{Path: o.Path})
	if err != nil {
		return err
	}
	if err := storetest.Write(ctx, s, store.Full, "a"); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	err = follow.Run(following, s, follow.Follower{Name: "f", Batch: func(context.Context, []store.Change) ([]follow.Refusal, error) {
		stop()
		return nil, filepath.WalkDir(filepath.Dir(o.Path), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			storetest.Tell(fmt.Sprintf("%v %s", info.Mode(), strings.TrimPrefix(path, filepath.Dir(o.Path))))
			return err
		})
	}})
	return errors.Join(err, s.Close())
}

func TestFilesAreTheirOwnersAloneUnderAnyUmask(t *testing.T) {
	t.Parallel()
	for _, mask := range []int{0, 0o022, 0o077} {
		p := child(t, "modes", order{Path: storetest.Path(t), Mask: mask})
		lines, err := p.Wait(t)
		if err != nil {
			t.Fatal(err)
		}
		check := ""
		if storetest.Key() != nil {
			check = "-rw------- /cairn.db-cipher\n"
		}
		want := "drwx------ \n-rw------- /cairn.db\n" + check + "-rw------- /cairn.db-follower-f\n-rw------- /cairn.db-lock\n" +
			"-rw------- /cairn.db-shm\n-rw------- /cairn.db-wal"
		if got := strings.Join(lines, "\n"); got != want {
			t.Errorf("under umask %03o:\n%s\nwant:\n%s", mask, got, want)
		}
	}
}

// nobody is a user without permissions; root could read any file, whatever its mode.
const nobody = 65534

func TestWithoutRightsReadingWorksAndWritingIsRefused(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	o := order{Path: base}
	if os.Getuid() != 0 {
		if err := withoutRights(o); err != nil {
			t.Fatal(err)
		}
		return
	}
	// The user cannot access the test's own program and folder.
	program := filepath.Join(base, "test")
	if err := errors.Join(os.Chmod(filepath.Dir(base), 0o755), os.Chmod(base, 0o777), copyProgram(program)); err != nil {
		t.Fatal(err)
	}
	cmd := storetest.Command("", childEnv(t, "without rights", o)...)
	cmd.Path, cmd.Args[0], cmd.Dir = program, program, base
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if _, err := storetest.StartProcess(t, cmd).Wait(t); err != nil {
		t.Fatal(err)
	}
}

// copyProgram prevents starting children meanwhile: they would inherit the open file,
// which then could not be executed.
func copyProgram(to string) error {
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		return err
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(to, text, 0o755)
}

// rights describes what a user without permissions may find.
type rights struct {
	name         string
	folder, file fs.FileMode
	held         bool // another process has the store open
}

func withoutRights(o order) error {
	for _, r := range []rights{
		{"folder", 0o500, 0o600, false},
		{"file", 0o700, 0o400, false},
		{"both", 0o500, 0o400, false},
		{"held", 0o500, 0o400, true},
	} {
		if err := r.try(filepath.Join(o.Path, r.name, "cairn.db")); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	if err := salvageWithoutRights(filepath.Join(o.Path, "salvage", "cairn.db")); err != nil {
		return fmt.Errorf("salvage: %w", err)
	}
	locked := filepath.Join(o.Path, "locked")
	if err := os.Mkdir(locked, 0o500); err != nil {
		return err
	}
	_, err := open(context.Background(), store.Config{Path: filepath.Join(locked, "data", "cairn.db")})
	return expectCannotWrite(err)
}

// salvageWithoutRights damages a store in a folder and then removes the permission to
// write it.
func salvageWithoutRights(path string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, store.Config{Path: path})
	if err != nil {
		return err
	}
	if err := errors.Join(storetest.Write(ctx, s, store.Full, "a"), s.Close()); err != nil {
		return err
	}
	broken, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	clear(broken[:4096])
	if err := errors.Join(os.WriteFile(path, broken, 0o600), os.Chmod(filepath.Dir(path), 0o500)); err != nil {
		return err
	}
	_, err = salvage.Run(ctx, salvage.Config{Path: path})
	now, rerr := os.ReadFile(path)
	found, derr := os.ReadDir(filepath.Dir(path))
	if rerr != nil || derr != nil || !bytes.Equal(now, broken) || len(found) != 2 { // the store and the writers' lock
		return fmt.Errorf("the folder was changed: %v %v %v", rerr, derr, found)
	}
	return errors.Join(expectCannotWrite(err), os.Chmod(filepath.Dir(path), 0o700))
}

// try creates a store, removes the permissions, and reads and writes.
func (r rights) try(path string) error {
	ctx := context.Background()
	s, err := open(ctx, store.Config{Path: path})
	if err != nil {
		return err
	}
	if err := storetest.Write(ctx, s, store.Full, "a"); err != nil {
		return err
	}
	if !r.held {
		if err := s.Close(); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chmod(path, r.file), os.Chmod(filepath.Dir(path), r.folder), readOne(ctx, path)); err != nil {
		return err
	}
	other, err := open(ctx, store.Config{Path: path})
	if err == nil {
		err = errors.Join(storetest.Write(ctx, other, store.Full, "c"), other.Close())
	}
	return errors.Join(expectCannotWrite(err), os.Chmod(filepath.Dir(path), 0o700), s.Close())
}

func readOne(ctx context.Context, path string) error {
	s, err := open(ctx, store.Config{Path: path, ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open for reading: %w", err)
	}
	err = s.Read(ctx, func(ctx context.Context, tx *store.Tx) error {
		head, err := tx.Head(ctx)
		if err == nil && head == 0 {
			err = errors.New("the store is empty")
		}
		return err
	})
	return errors.Join(err, s.Close())
}

func expectCannotWrite(err error) error {
	if f := fault.As(err); f == nil || f.Code != store.CodeReadOnly || f.Message != "cannot write" {
		return fmt.Errorf("writing: %w (code %q), want cannot write", err, storetest.CodeOf(err))
	}
	return nil
}
