package store

import "os"

// maxLeftLog is the maximum size in bytes of a write-ahead log that Leave leaves. The next
// process that opens the store alone reads all of it, in about a millisecond.
const maxLeftLog = 1 << 19

// Leave ends the use of a store in a process that exits immediately afterwards. Committed
// writes are safe, but the connections stay open until the process exits. Unlike Close, it does
// not checkpoint the write-ahead log if no other process has the store open, which takes four
// flushes to the disk. The log stays next to the file, and the next process uses it. A log
// larger than maxLeftLog, or a copy of the store in a temporary folder, is closed normally.
func (s *Store) Leave() error {
	log, err := os.Stat(s.path + "-wal")
	if err == nil && log.Size() <= maxLeftLog && s.temporary == "" {
		return nil
	}
	return s.Close()
}
