package repository

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func benchArchive(b *testing.B) *Repository {
	b.Helper()
	r, err := Open(b.Context(), filepath.Join(b.TempDir(), "shop"), "", 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.Close() })
	return r
}

// messages are files as mail lays them out: 100 messages are 300 files, in
// folders of a month, 1,000 entries each.
func messages(from, n int) []File {
	var fs []File
	for i := from; len(fs) < n; i++ {
		body := fmt.Appendf(nil, "---json\n{\n  \"id\": %d,\n  \"from\": \"BlueLake\"\n}\n---\n\n%s\n", i, bytes.Repeat([]byte("Some words of a message. "), 20))
		sub := ""
		if i >= 1000 {
			sub = fmt.Sprintf("%03d/", i/1000)
		}
		name := fmt.Sprintf("2026/03/%s2026-03-01T09-30-05Z__hello-there__%d.md", sub, i)
		for _, dir := range []string{"messages/", "agents/A" + strconv.Itoa(i%20) + "/outbox/", "agents/A" + strconv.Itoa(i*7%20+20) + "/inbox/"} {
			if len(fs) < n {
				fs = append(fs, File{Path: dir + name, Content: body})
			}
		}
	}
	return fs
}

// BenchmarkCommit measures one commit of 100 files in a large repository. Contract mail
// §11 requires at most 1.5 times as long at 100,000 files as at 1,000.
func BenchmarkCommit(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			if size > 10_000 && testing.Short() {
				b.Skip("-short")
			}
			r := benchArchive(b)
			all := messages(0, size)
			for len(all) > 0 {
				n := min(4096, len(all))
				if _, err := r.Commit(b.Context(), all[:n], "batch", noon); err != nil {
					b.Fatal(err)
				}
				all = all[n:]
			}
			next := size/3 + 1
			for b.Loop() {
				if _, err := r.Commit(b.Context(), messages(next, 100), "batch", noon); err != nil {
					b.Fatal(err)
				}
				next += 34
				b.StopTimer()
				if err := r.Repack(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkFiles archives 4,096 files as commits of 300, with and without the work tree,
// next to a git fast-import of the same tree as one commit.
func BenchmarkFiles(b *testing.B) {
	const count = 4096
	batches := func(b *testing.B, each func(r *Repository, fs []File)) {
		var spent time.Duration
		for b.Loop() {
			b.StopTimer()
			r, fs := benchArchive(b), messages(0, count)
			b.StartTimer()
			start := time.Now()
			for len(fs) > 0 {
				n := min(300, len(fs))
				each(r, fs[:n])
				fs = fs[n:]
			}
			spent += time.Since(start)
		}
		b.ReportMetric(count*float64(b.N)/spent.Seconds(), "files/s")
	}
	commit := func(r *Repository, fs []File) {
		if _, err := r.Commit(b.Context(), fs, "batch", noon); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("files-and-commits", func(b *testing.B) {
		batches(b, func(r *Repository, fs []File) {
			if _, err := r.WriteFiles(b.Context(), fs); err != nil {
				b.Fatal(err)
			}
			commit(r, fs)
		})
	})
	b.Run("commits", func(b *testing.B) { batches(b, commit) })
	b.Run("bare-fast-import", func(b *testing.B) {
		var stream bytes.Buffer
		fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter c <c@example.org> 0 +0000\ndata 1\nx\n")
		for _, f := range messages(0, count) {
			fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", f.Path, len(f.Content), f.Content)
		}
		var spent time.Duration
		for b.Loop() {
			b.StopTimer()
			dir := b.TempDir()
			if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			b.StartTimer()
			start := time.Now()
			cmd := exec.Command("git", "-C", dir, "fast-import", "--quiet")
			cmd.Stdin = bytes.NewReader(stream.Bytes())
			if out, err := cmd.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			spent += time.Since(start)
		}
		b.ReportMetric(count*float64(b.N)/spent.Seconds(), "files/s")
	})
}
