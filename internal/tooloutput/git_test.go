package tooloutput

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func number(n int) *int { return &n }

func TestReadCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stdout string
		want         Commit
	}{
		{"whole", "[main c0dd4af] fix: the list\n 8 files changed, 998 insertions(+), 4 deletions(-)\n" +
			" create mode 100644 a/b.go\n create mode 100755 run me.sh\n delete mode 100644 c\n rename d => e (90%)\n",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "fix: the list", Files: number(8), Insertions: number(998),
				Deletions: number(4), Created: []string{"a/b.go", "run me.sh"}}},
		{"one of each", "[feat/x-1 0123456789] s\n 1 file changed, 1 insertion(+), 1 deletion(-)",
			Commit{Branch: "feat/x-1", Hash: "0123456789", Message: "s", Files: number(1), Insertions: number(1), Deletions: number(1)}},
		{"no deletions", "[main c0dd4af] s\n 1 file changed, 2 insertions(+)\n",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s", Files: number(1), Insertions: number(2)}},
		{"no insertions", "[main c0dd4af] s\n 2 files changed, 3 deletions(-)\n",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s", Files: number(2), Deletions: number(3)}},
		{"no lines", "[main c0dd4af] s\n 1 file changed, 0 insertions(+), 0 deletions(-)\n",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s", Files: number(1), Insertions: number(0), Deletions: number(0)}},
		{"only a subject", "[main c0dd4af] Merge branch 'x'\n", Commit{Branch: "main", Hash: "c0dd4af", Message: "Merge branch 'x'"}},
		{"root commit", "Initialized empty Git repository in /r/.git/\n[main (root-commit) 967fe65] init\n 1 file changed, 1 insertion(+)\n create mode 100644 f",
			Commit{Branch: "main", Hash: "967fe65", Message: "init", Files: number(1), Insertions: number(1), Created: []string{"f"}}},
		{"detached HEAD", "[detached HEAD c0dd4af] s", Commit{Hash: "c0dd4af", Message: "s"}},
		{"root commit on a detached HEAD", "[detached HEAD (root-commit) c0dd4af] s", Commit{Hash: "c0dd4af", Message: "s"}},
		{"long hash", "[m " + strings.Repeat("a1", 32) + "] s", Commit{Branch: "m", Hash: strings.Repeat("a1", 32), Message: "s"}},
		{"amended", "[main c0dd4af] s\n Author: A <a@b>\n Date: Thu Jan 29 10:00:00 2026 +0100\n 4 files changed, 4 insertions(+)",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s", Files: number(4), Insertions: number(4)}},
		{"brackets in the subject", "[main c0dd4af] [skip ci] a] b", Commit{Branch: "main", Hash: "c0dd4af", Message: "[skip ci] a] b"}},
		{"empty subject", "[main c0dd4af]", Commit{Branch: "main", Hash: "c0dd4af"}},
		{"CRLF", "[main c0dd4af] s\r\n 1 file changed, 1 insertion(+)\r\n create mode 100644 f\r\n",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s", Files: number(1), Insertions: number(1), Created: []string{"f"}}},
		{"quoted path", "[main c0dd4af] s\n create mode 100644 \"caf\\303\\251 \\\"x\\\".txt\"\n create mode 100644 \"a",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s", Created: []string{"café \"x\".txt", `"a`}}},
		{"two commits", "[main c0dd4af] one\n 1 file changed, 1 insertion(+)\n create mode 100644 f\n[main d1ccd8b] two\n",
			Commit{Branch: "main", Hash: "d1ccd8b", Message: "two"}},
		{"other numbers before and after", " 9 files changed, 9 insertions(+)\n[main c0dd4af] s\n 1 file changed, 2 insertions(+)\n 7 files changed\n",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s", Files: number(1), Insertions: number(2)}},
		{"hooks talk", "[lint] passed\n[INFO] x\n10:00 ok\n[main c0dd4af] s\nTo github.com:a/b.git\n   c0dd4af..d1ccd8b  main -> main",
			Commit{Branch: "main", Hash: "c0dd4af", Message: "s"}},
		{"only the end of it", " 1 file changed, 2 insertions(+)\n create mode 100644 f",
			Commit{Files: number(1), Insertions: number(2), Created: []string{"f"}}},
		{"nothing", "", Commit{}},
		{"nothing to commit", "On branch main\nnothing to commit, working tree clean\n", Commit{}},
		{"no commit", "[x] y\n[a b] c\n[main zzzzzzz] s\n[ c0dd4af] s\n[two words c0dd4af] s\n[main c0dd4a] s\n" +
			"1 files\n-1 files changed\n1 file changed, oops\n99999999999999999999 files changed\ncreate mode 100644 \ncreate mode rwx f\ncreate mode x",
			Commit{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ReadCommit(c.stdout); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestReadCommitKeepsFiftyNewFiles(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString("[main c0dd4af] s\n")
	for i := range 60 {
		fmt.Fprintf(&out, " create mode 100644 f%d\n", i)
	}
	got := ReadCommit(out.String()).Created
	if len(got) != maxNewFiles || got[0] != "f0" || got[49] != "f49" {
		t.Errorf("%d files: %v", len(got), got)
	}
}

func TestReadPush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, output string
		want         Push
	}{
		{"update", "To github.com:o/r.git\n   fe89275..54a7cb9  feat/x -> feat/x\n",
			Push{"github.com:o/r.git", "fe89275..54a7cb9", "feat/x"}},
		{"new branch", "remote: \nremote: Create a pull request:\nremote:   https://x/y\nTo https://x/y.git\n * [new branch]      HEAD -> feat\nbranch 'feat' set up to track 'origin/feat'.\n",
			Push{Remote: "https://x/y.git", Branch: "feat"}},
		{"new tag", "To x\n * [new tag]         v1 -> v1", Push{Remote: "x", Branch: "v1"}},
		{"forced", "To ../r.git\n + 123a9dc...12e7e04 a -> b (forced update)\n", Push{"../r.git", "123a9dc...12e7e04", "b"}},
		{"deleted", "To x\n - [deleted]         old\n", Push{Remote: "x", Branch: "old"}},
		{"several refs", "To x\n ! [rejected]        a -> a (fetch first)\n = [up to date]      b -> b\n   1234567..89abcde  c -> c\n   1234567..89abcde  d -> d\n",
			Push{"x", "1234567..89abcde", "c"}},
		{"several remotes", "To a\n ! [remote rejected] m -> m (hook (pre) declined)\nTo b\n   1234567..89abcde  m -> m\n",
			Push{"b", "1234567..89abcde", "m"}},
		{"all rejected", "To x\n ! [rejected]        a -> a (non-fast-forward)\nerror: failed to push some refs to 'x'\n", Push{Remote: "x"}},
		{"full ref name", "To x\n   1234567..89abcde  HEAD -> refs/heads/m", Push{"x", "1234567..89abcde", "m"}},
		{"review ref", "To x\n * [new reference]   HEAD -> refs/for/m", Push{Remote: "x", Branch: "refs/for/m"}},
		{"path with spaces", "To /my repo\n   1234567..89abcde  m -> m", Push{"/my repo", "1234567..89abcde", "m"}},
		{"progress and CRLF", "Counting objects: 50%\rCounting objects: 100%\rWriting objects: 100% (3/3), done.\r\nTo x\r\n   1234567..89abcde  m -> m\r\n",
			Push{"x", "1234567..89abcde", "m"}},
		{"hooks talk", "[entire] Pushing session logs to origin...\nTo be continued\nTo x\n   1234567..89abcde  m -> m",
			Push{"x", "1234567..89abcde", "m"}},
		{"a fetch after it", "To x\n * [new branch] a -> a\nFrom y\n   1234567..89abcde  m -> origin/m", Push{Remote: "x", Branch: "a"}},
		{"a fetch alone", "From y\n   1234567..89abcde  m -> origin/m", Push{}},
		{"a fetch after talk", "To be sure\nFrom y\n   1234567..89abcde  m -> origin/m", Push{}},
		{"up to date", "Everything up-to-date\n", Push{}},
		{"talk", "To fix this, run\n  git pull\n * x\n - y z w\n 123..456 a\n [oops\n", Push{}},
		{"nothing", "", Push{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := ReadPush(c.output); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func FuzzGitFacts(f *testing.F) {
	f.Add("[main (root-commit) c0dd4af] s\n 1 file changed, 1 insertion(+)\r\n create mode 100644 \"\\303\"\n")
	f.Add("To x\n + 123a9dc...12e7e04 a -> b (forced update)\n ! [rejected] a -> a\r - [deleted] z\n")
	f.Fuzz(func(t *testing.T, output string) {
		c := ReadCommit(output)
		if c.Hash != "" && !isHash(c.Hash) || c.Branch != "" && c.Hash == "" || strings.ContainsAny(c.Branch+c.Message, "\r\n") || len(c.Created) > maxNewFiles {
			t.Fatalf("impossible commit %+v", c)
		}
		p := ReadPush(output)
		if p.HashRange != "" && !isHashRange(p.HashRange) || p.Branch != "" && p.Remote == "" || strings.ContainsAny(p.Branch, " \r\n") {
			t.Fatalf("impossible push %+v", p)
		}
	})
}
