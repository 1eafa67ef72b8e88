package memories_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"

	"cairn/internal/memory"
	"cairn/internal/memory/contents"
	"cairn/internal/memory/memories"
	"cairn/internal/store"
	"cairn/internal/store/storetest"

	"go.uber.org/goleak"
)

// childMain adds entries to `default` from eight goroutines until it is killed. It prints each
// entry when it is acknowledged.
func childMain() int {
	ctx := context.Background()
	s, err := store.Open(ctx, storetest.Config(store.Config{Path: os.Getenv(pathVar), Role: store.Server}))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	b := memories.New(s, memory.Config{Settings: memory.Defaults()})
	failed := make(chan error)
	for w := range 8 {
		go func() {
			c := memory.Caller{ProjectID: fmt.Sprint("p", w%3)}
			for i := 0; ; i++ {
				text := fmt.Sprintf("w%d-%d", w, i)
				out, _, err := b.AddEntry(ctx, c, contents.NewEntry{MemoryID: memory.DefaultMemory, RawEntry: text})
				if err != nil {
					failed <- err
					return
				}
				storetest.Tell(out.LocalID + " " + text)
			}
		}()
	}
	fmt.Fprintln(os.Stderr, errors.Join(<-failed, s.Close()))
	return 1
}

// Environment variables of a child process.
const (
	childVar = "CAIRN_MEMORY_CHILD"
	pathVar  = "CAIRN_MEMORY_STORE"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(childVar) != "" {
		os.Exit(childMain())
	}
	goleak.VerifyTestMain(m)
}
