package cairn

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/documents"
	"cairn/internal/mail/messages"
	"cairn/internal/store"
)

// postMany writes messages into a project in a few transactions, as a burst of agents
// would.
func (m *mailed) postMany(project string, from, n int) {
	m.t.Helper()
	body := string(bytes.Repeat([]byte("Some words of a message. "), 20))
	for i := from; i < from+n; i++ {
		m.send(project, messages.SendArgs{To: []string{"BlueDog"}, Subject: fmt.Sprint("step ", i), Body: body})
	}
}

// BenchmarkArchive measures how long messages take from the log into Git: rendering, files,
// commits and cursor. Contract mail §11 requires 100 messages in 250 ms, and 1,000 a
// second. Each message is three files. For comparison it runs git fast-import of the same
// tree.
func BenchmarkArchive(b *testing.B) {
	for _, n := range []int{100, 4000} {
		b.Run(fmt.Sprint(n, "-messages"), func(b *testing.B) {
			m := newMailed(b)
			m.register("shop", "GreenLake", "BlueDog")
			m.sync()
			next := 0
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				m.postMany("shop", next, n)
				next += n
				a := m.archiver(m.written(), nil)
				b.StartTimer()
				began := time.Now()
				done, err := a.Sync(b.Context(), "", func(string) {})
				if err != nil || len(done.Failed) > 0 {
					b.Fatal(done.Failed, err)
				}
				spent += time.Since(began)
				b.StopTimer()
				if err := a.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(n*b.N)/spent.Seconds(), "messages/s")
			b.ReportMetric(float64(3*n*b.N)/spent.Seconds(), "files/s")
		})
		b.Run(fmt.Sprint(n, "-messages-bare-fast-import"), func(b *testing.B) {
			m := newMailed(b)
			m.register("shop", "GreenLake", "BlueDog")
			m.postMany("shop", 0, n)
			var stream bytes.Buffer
			files := 0
			fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter c <c@example.org> 0 +0000\ndata 1\nx\n")
			err := m.written().Read(b.Context(), func(ctx context.Context, tx *store.Tx) error {
				uid, err := documents.UIDOf(ctx, tx, "shop")
				if err != nil {
					return err
				}
				return documents.RenderAll(ctx, tx, uid, func(_ mail.Document, list []documents.File) error {
					for _, f := range list {
						files++
						fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", f.Path, len(f.Content), f.Content)
					}
					return nil
				})
			})
			if err != nil {
				b.Fatal(err)
			}
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				dir := filepath.Join(b.TempDir(), "bare")
				if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
				cmd.Stdin = bytes.NewReader(stream.Bytes())
				b.StartTimer()
				began := time.Now()
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v: %s", err, out)
				}
				spent += time.Since(began)
				b.StopTimer()
				if err := os.RemoveAll(dir); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(n*b.N)/spent.Seconds(), "messages/s")
			b.ReportMetric(float64(files*b.N)/spent.Seconds(), "files/s")
		})
	}
}
