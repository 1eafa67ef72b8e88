package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cairn/bench/workload"
)

// generatedTranscripts returns a folder with transcripts of generated sessions in Claude Code's
// layout, created at its first use.
func (b *bench) generatedTranscripts() (dir string, err error) {
	dir = filepath.Join(b.dir, fmt.Sprintf("transcripts-%d", b.transcripts))
	done := dir + ".complete"
	if _, err := os.Stat(done); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	b.say("writing transcripts of %d MB", b.transcripts>>20)
	var bytes int64
	for n := 0; bytes < b.transcripts; n++ {
		s := b.load.Session(6_000_000+n, time.Now().Add(-storeSpan+time.Duration(n)*10*time.Hour))
		size, err := workload.WriteTranscript(dir, s, 60+37*n%120)
		if err != nil {
			return "", err
		}
		bytes += size
	}
	return dir, os.WriteFile(done, nil, 0o600)
}
