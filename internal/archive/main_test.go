package archive

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childVar tells the test program to archive in a folder until it is killed.
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
