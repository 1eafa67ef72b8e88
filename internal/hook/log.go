package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/internal/fault"
)

// maxLog is the size at which cairn.log is rotated. The old file is kept as cairn.log.1
// (contract observations §1).
const maxLog = 1 << 20

// logError appends one line to cairn.log in the data directory. It ignores errors, because
// a hook cannot handle them.
func logError(dir, what string, err error) {
	path := filepath.Join(dir, "cairn.log")
	info, serr := os.Stat(path)
	if serr == nil && !info.Mode().IsRegular() {
		return // opening a FIFO could block
	}
	if serr == nil && info.Size() >= maxLog {
		if os.Rename(path, path+".1") != nil {
			return // another process has it open or is renaming it; a later call rotates it
		}
	}
	f, oerr := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if oerr != nil {
		return
	}
	defer f.Close()
	fmt.Fprintf(f, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fault.Line(what, err))
}
