package store_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"cairn/internal/store"
	"cairn/internal/store/storetest"

	"go.uber.org/goleak"
)

const (
	childVar = "CAIRN_TEST_CHILD"
	orderVar = "CAIRN_TEST_ORDER"
)

// order contains the instructions for a child process.
type order struct {
	Path   string
	Sync   store.Sync
	Role   store.Role
	For    time.Duration
	Mask   int
	Prefix string
}

func TestMain(m *testing.M) {
	flag.Parse()
	if name := os.Getenv(childVar); name != "" {
		os.Exit(childMain(name))
	}
	if os.Getenv("CAIRN_SOAK") == "" {
		// With -short, a second run with the other driver, rapid does a fifth of its checks.
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func childMain(name string) int {
	var o order
	err := json.Unmarshal([]byte(os.Getenv(orderVar)), &o)
	if err == nil {
		err = runChild(name, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name, err)
		return 1
	}
	return 0
}

func runChild(name string, o order) error {
	in := bufio.NewReader(os.Stdin)
	switch name {
	case "first writer":
		return firstWriter(o, in)
	case "create":
		return create(o)
	case "write until killed":
		return writeUntilKilled(o)
	case "open and close until killed":
		return openAndCloseUntilKilled(o)
	case "compete":
		return compete(o, in)
	case "record until killed":
		return recordUntilKilled(o)
	case "encrypt until killed":
		return encryptUntilKilled(o)
	case "hold the lock":
		return holdLock(o, in)
	case "keep open":
		return keepOpen(o, in)
	case "salvage":
		return salvageChild(o, in)
	}
	return runLinuxChild(name, o)
}

// child starts a child process of this package.
func child(t testing.TB, name string, o order) *storetest.Process {
	t.Helper()
	return storetest.StartProcess(t, storetest.Command("", childEnv(t, name, o)...))
}

// childEnv returns the variables that make the test binary a child.
func childEnv(t testing.TB, name string, o order) []string {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return []string{childVar + "=" + name, orderVar + "=" + string(text)}
}

// open calls store.Open, with an encrypted store if the test binary encrypts all stores.
func open(ctx context.Context, c store.Config) (*store.Store, error) {
	return store.Open(ctx, storetest.Config(c))
}
