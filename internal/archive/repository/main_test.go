package repository

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// childVar makes the test program archive in a folder until it is killed.
const childVar = "CAIRN_TEST_ARCHIVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childVar); dir != "" {
		if err := archiveForEver(dir, os.Getenv(childVar+"_LAST")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// archiveForEver commits, refreshes the index and consolidates packs, and prints
// the number and hash of each commit once it is acknowledged.
func archiveForEver(dir, last string) error {
	ctx := context.Background()
	r, err := Open(ctx, dir, last, 0)
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		for {
			if err := r.Repack(ctx); err != nil {
				failed <- err
			}
		}
	}()
	tree, err := r.Tree(ctx)
	if err != nil {
		return err
	}
	for n := len(tree); ; n++ {
		files := childFiles(n)
		if _, err := r.WriteFiles(ctx, files); err != nil {
			return err
		}
		hash, err := r.Commit(ctx, files, fmt.Sprintf("commit %d", n), noon)
		if err != nil {
			return err
		}
		fmt.Println(n, hash)
		if n%7 == 0 {
			if err := r.RefreshIndex(ctx); err != nil {
				return err
			}
		}
		select {
		case err := <-failed:
			return err
		default:
		}
	}
}

func childFiles(n int) []File {
	return files(fmt.Sprintf("messages/%03d/%d.md", n/100, n), strconv.Itoa(n), "state/last.json", strconv.Itoa(n))
}
