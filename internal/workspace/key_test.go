package workspace

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/store"
)

// newKey returns a key that is in no file of the tree.
func newKey(t testing.TB) []byte {
	t.Helper()
	key := make([]byte, store.KeySize)
	if _, err := rand.Read(key); err != nil {
		t.Fatal(err)
	}
	return key
}

func put(t testing.TB, path, text string, mode fs.FileMode) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func opened(t testing.TB, c Config) *Workspace {
	t.Helper()
	k, err := Open(c, Options{OpenStore: store.Open})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

func TestKeyIsReadInEverySpellingAndNoOther(t *testing.T) {
	t.Parallel()
	key := newKey(t)
	for _, text := range []string{
		hex.EncodeToString(key), strings.ToUpper(hex.EncodeToString(key)), " " + hex.EncodeToString(key) + "\r\n",
		base64.StdEncoding.EncodeToString(key), base64.RawStdEncoding.EncodeToString(key),
		base64.URLEncoding.EncodeToString(key), base64.RawURLEncoding.EncodeToString(key) + "\n",
	} {
		if got, ok := parseKey(text); !ok || !bytes.Equal(got, key) {
			t.Errorf("%q is not read", text)
		}
	}
	for _, text := range []string{
		"", "key", hex.EncodeToString(key[:31]), hex.EncodeToString(key) + "00", string(key),
		base64.StdEncoding.EncodeToString(key[:31]), base64.StdEncoding.EncodeToString(append(key, 0)),
		hex.EncodeToString(key)[:32] + "\n" + hex.EncodeToString(key)[32:], base64.StdEncoding.EncodeToString(key)[:20] + "\n" + base64.StdEncoding.EncodeToString(key)[20:],
	} {
		if _, ok := parseKey(text); ok {
			t.Errorf("%q counts as a key", text)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add(strings.Repeat("0f", store.KeySize))
	f.Add(base64.StdEncoding.EncodeToString(make([]byte, store.KeySize)))
	f.Add(" AAAA=\n")
	f.Fuzz(func(t *testing.T, text string) {
		key, ok := parseKey(text)
		if ok != (len(key) == store.KeySize) {
			t.Fatalf("%q: %d bytes, %v", text, len(key), ok)
		}
		if again, ok2 := parseKey(hex.EncodeToString(key)); ok && (!ok2 || !bytes.Equal(again, key)) {
			t.Fatalf("%q does not come back", text)
		}
	})
}

func TestKeyComesFromTheFirstOfThreePlaces(t *testing.T) {
	t.Parallel()
	for _, spelling := range []string{"[store]\nkey_file = %q\n", "key_file = %q\n"} {
		dir, home := t.TempDir(), t.TempDir()
		env, file, own := newKey(t), newKey(t), newKey(t)
		expect := func(c Config, want []byte, place string) {
			t.Helper()
			c.Dir, c.Home = dir, home
			k, err := opened(t, c).LoadKey()
			if err != nil || !bytes.Equal(k.Bytes, want) || k.Place != place {
				t.Errorf("the key is of %q, want %q: %v", k.Place, place, err)
			}
		}
		_, err := opened(t, Config{Dir: dir}).LoadKey()
		if f := fault.As(err); f == nil || f.Code != store.CodeKey || f.Kind != fault.Unavailable || f.Hint != store.KeyPlaces {
			t.Errorf("without a key: %v", err)
		}
		put(t, filepath.Join(dir, "key"), fmt.Sprintf("%x\n", own), 0o644)
		expect(Config{}, own, filepath.Join(dir, "key"))
		if info, err := os.Stat(filepath.Join(dir, "key")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("the key file has mode %v: %v", info.Mode(), err)
		}
		put(t, filepath.Join(dir, "config.toml"), fmt.Sprintf(spelling, "secrets/cairn.key"), 0o600)
		put(t, filepath.Join(dir, "secrets", "cairn.key"), base64.StdEncoding.EncodeToString(file), 0o600)
		expect(Config{}, file, filepath.Join(dir, "secrets", "cairn.key"))
		expect(Config{Key: fmt.Sprintf("%x", env)}, env, "CAIRN_KEY")
		put(t, filepath.Join(dir, "config.toml"), fmt.Sprintf(spelling, "~/cairn.key"), 0o600)
		put(t, filepath.Join(home, "cairn.key"), fmt.Sprintf("%x", file), 0o600)
		expect(Config{}, file, filepath.Join(home, "cairn.key"))
	}
}

func TestPlaceThatHoldsNoKeyIsNamedAndNotSkippedOrShown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "key"), fmt.Sprintf("%x", newKey(t)), 0o600)
	put(t, filepath.Join(dir, "bad"), "hush-hush", 0o600)
	for name, c := range map[string]struct {
		env, file, place string
	}{
		"environment":  {"hush-hush", "", "CAIRN_KEY"},
		"file":         {"", "bad", filepath.Join(dir, "bad")},
		"missing file": {"", "none", filepath.Join(dir, "none")},
	} {
		k := opened(t, Config{Dir: dir, Key: c.env})
		k.Settings.KeyFile = c.file
		_, err := k.LoadKey()
		f := fault.As(err)
		if f == nil || f.Code != store.CodeKey || !strings.Contains(f.Message, c.place) || strings.Contains(f.Message+f.Hint, "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKeyStateSaysWhatIsWrongAndChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := Config{Dir: dir}
	expect := func(c Config, want, place string) KeyState {
		t.Helper()
		got, _, err := opened(t, c).KeyState()
		if err != nil || got.State != want || got.Place != place || (got.Why == "") != (want == KeyPlain || want == KeyFits) {
			t.Errorf("the state is %+v, want %q of %q: %v", got, want, place, err)
		}
		return got
	}
	expect(config, KeyPlain, "")
	k := opened(t, config)
	if _, err := k.Store(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	expect(config, KeyPlain, "")
	done, err := opened(t, config).Encrypt(t.Context())
	own := filepath.Join(dir, "key")
	if err != nil || !done.KeyMade || done.Key != own || done.Already {
		t.Fatalf("%+v: %v", done, err)
	}
	expect(config, KeyFits, own)
	if runtime.GOOS != "windows" {
		if err := os.Chmod(own, 0o640); err != nil {
			t.Fatal(err)
		}
		if got := expect(config, KeyFits, own); !got.Wide {
			t.Error("the wide rights are not told")
		}
		if info, err := os.Stat(own); err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("they were changed: %v", err)
		}
	}
	expect(Config{Dir: dir, Key: fmt.Sprintf("%x", newKey(t))}, KeyWrong, "CAIRN_KEY")
	expect(Config{Dir: dir, Key: "none"}, KeyUnusable, "CAIRN_KEY")
	again, err := opened(t, config).Encrypt(t.Context())
	if err != nil || !again.Already || again.Key != own {
		t.Errorf("encrypting again: %+v: %v", again, err)
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	expect(config, KeyMissing, "")
}

func TestEncryptWithoutAStoreMakesNoKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := opened(t, Config{Dir: dir}).Encrypt(t.Context())
	if !fault.HasCode(err, store.CodeMissing) {
		t.Errorf("got %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("it made %v: %v", entries, err)
	}
}
