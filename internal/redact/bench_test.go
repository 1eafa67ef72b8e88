package redact

import (
	"strings"
	"testing"
)

// repeatTo repeats s until the text has n bytes.
func repeatTo(s string, n int) string {
	return strings.Repeat(s, n/len(s)+1)[:n]
}

const (
	prose = "The session opened with a question about the release notes; we agreed that the token count in the header was " +
		"misleading and that the access path through the old handler has to go. Before the next review somebody should look at " +
		"docs/architecture/storage.md, section 4, because the key idea (one writer, many readers) is not explained there.\n"
	code = "func (s *Store) open(ctx context.Context, path string, o Options) (*sql.DB, error) {\n\tif o.Token == \"\" && o.readToken != nil {\n" +
		"\t\ttoken := o.readToken(ctx)\n\t\tif len(token) < minTokenLength {\n\t\t\treturn nil, fmt.Errorf(\"token of %s: %w\", path, ErrShort)\n\t\t}\n\t}\n" +
		"\tdb, err := sql.Open(\"sqlite\", path+\"?_busy_timeout=5000&_foreign_keys=on\")\n\treturn db, err\n}\n"
	logs = "2026-03-04T10:15:32.123456Z INFO  worker=7 job=backup-nightly-28374650-x7k2p msg=\"uploaded 132 objects\" bucket=assets-eu took=1.23s " +
		"commit=4f3a2b1c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a request_id=550e8400-e29b-41d4-a716-446655440000 path=/srv/app/releases/20260304/current\n"
)

func benchmarkText(b *testing.B, text string) {
	b.Helper()
	f := mustFilter(b, Options{})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		f.Text(text)
	}
}

func BenchmarkText2KBProse(b *testing.B) { benchmarkText(b, repeatTo(prose, 2048)) }
func BenchmarkText2KBCode(b *testing.B)  { benchmarkText(b, repeatTo(code, 2048)) }
func BenchmarkText2KBLog(b *testing.B)   { benchmarkText(b, repeatTo(logs, 2048)) }
func BenchmarkText64KB(b *testing.B)     { benchmarkText(b, repeatTo(prose+code+logs, 65_536)) }

func BenchmarkText2KBWithSecret(b *testing.B) {
	benchmarkText(b, repeatTo(prose, 2000)+" password=hunter2 and "+fakeGitHub()+" end")
}

// BenchmarkHostile measures texts designed to be slow. The time per byte must not depend
// on the length.
func BenchmarkHostile(b *testing.B) {
	for _, h := range hostile() {
		for _, n := range []int{4096, 65_536, 1 << 20} {
			b.Run(h.name+"/"+sizeName(n), func(b *testing.B) { benchmarkText(b, repeatTo(h.text, n)) })
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHeadTail16MB measures a long field of which little is kept. Only the search for
// open blocks reads all of it.
func BenchmarkHeadTail16MB(b *testing.B) {
	f := mustFilter(b, Options{})
	for name, piece := range map[string]string{"prose": prose, "markup": "<p class=x><b>word</b> -- </p>\n"} {
		text := repeatTo(piece, 16<<20)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				f.HeadTail(text, 1200, 800)
			}
		})
	}
}
