package storetest

import (
	"bytes"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"cairn/internal/store"
)

// encryptedFlag makes every store of a test binary encrypted: go test ./internal/store
// -args -encrypted.
var encryptedFlag = flag.Bool("encrypted", false, "encrypt every store of these tests")

// Key returns the key of every store if stores must be encrypted, else nil. The key is
// not secret.
func Key() []byte {
	if !*encryptedFlag {
		return nil
	}
	return bytes.Repeat([]byte{0x5a}, store.KeySize)
}

// Config returns c with the key if stores must be encrypted.
func Config(c store.Config) store.Config {
	if c.Key == nil {
		c.Key = Key()
	}
	return c
}

// RunEncrypted runs tests of this binary again, in a process in which every store is
// encrypted. Without names it runs all tests except the calling one. It skips under the
// race detector: the driver of encrypted stores would take minutes, and plain stores
// cover the same code.
func RunEncrypted(t *testing.T, names ...string) {
	t.Helper()
	if Key() != nil {
		t.Skip("runs in itself")
	}
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("takes minutes under the race detector")
	}
	cmd := Command("")
	if len(names) > 0 {
		cmd.Args = append(cmd.Args, "-test.run=^("+strings.Join(names, "|")+")$", "-test.v")
	} else {
		cmd.Args = append(cmd.Args, "-test.skip=^"+t.Name()+"$", "-test.v")
	}
	cmd.Args = append(cmd.Args, "-encrypted")
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	text, err := cmd.CombinedOutput()
	passed := strings.Count(string(text), "\n--- PASS: ")
	if err != nil {
		t.Fatalf("%v\n%s", err, failures(string(text)))
	}
	if passed < max(len(names), 1) {
		t.Fatalf("%d tests ran, want %d:\n%s", passed, len(names), text)
	}
	t.Log(fmt.Sprint(passed, " tests passed over encrypted stores"))
}

// failures returns a test's output without the tests that passed.
func failures(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		if !strings.HasPrefix(trimmed, "=== ") && !strings.HasPrefix(trimmed, "--- PASS") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
