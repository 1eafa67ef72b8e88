package observation

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
		want         commitFacts
	}{
		{"whole", "[main c0dd4af] fix: the list\n 8 files changed, 998 insertions(+), 4 deletions(-)\n" +
			" create mode 100644 a/b.go\n create mode 100755 run me.sh\n delete mode 100644 c\n rename d => e (90%)\n",
			commitFacts{branch: "main", hash: "c0dd4af", message: "fix: the list", files: number(8), insertions: number(998),
				deletions: number(4), created: []string{"a/b.go", "run me.sh"}}},
		{"one of each", "[feat/x-1 0123456789] s\n 1 file changed, 1 insertion(+), 1 deletion(-)",
			commitFacts{branch: "feat/x-1", hash: "0123456789", message: "s", files: number(1), insertions: number(1), deletions: number(1)}},
		{"no deletions", "[main c0dd4af] s\n 1 file changed, 2 insertions(+)\n",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s", files: number(1), insertions: number(2)}},
		{"no insertions", "[main c0dd4af] s\n 2 files changed, 3 deletions(-)\n",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s", files: number(2), deletions: number(3)}},
		{"no lines", "[main c0dd4af] s\n 1 file changed, 0 insertions(+), 0 deletions(-)\n",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s", files: number(1), insertions: number(0), deletions: number(0)}},
		{"only a subject", "[main c0dd4af] Merge branch 'x'\n", commitFacts{branch: "main", hash: "c0dd4af", message: "Merge branch 'x'"}},
		{"root commit", "Initialized empty Git repository in /r/.git/\n[main (root-commit) 967fe65] init\n 1 file changed, 1 insertion(+)\n create mode 100644 f",
			commitFacts{branch: "main", hash: "967fe65", message: "init", files: number(1), insertions: number(1), created: []string{"f"}}},
		{"detached HEAD", "[detached HEAD c0dd4af] s", commitFacts{hash: "c0dd4af", message: "s"}},
		{"root commit on a detached HEAD", "[detached HEAD (root-commit) c0dd4af] s", commitFacts{hash: "c0dd4af", message: "s"}},
		{"long hash", "[m " + strings.Repeat("a1", 32) + "] s", commitFacts{branch: "m", hash: strings.Repeat("a1", 32), message: "s"}},
		{"amended", "[main c0dd4af] s\n Author: A <a@b>\n Date: Thu Jan 29 10:00:00 2026 +0100\n 4 files changed, 4 insertions(+)",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s", files: number(4), insertions: number(4)}},
		{"brackets in the subject", "[main c0dd4af] [skip ci] a] b", commitFacts{branch: "main", hash: "c0dd4af", message: "[skip ci] a] b"}},
		{"empty subject", "[main c0dd4af]", commitFacts{branch: "main", hash: "c0dd4af"}},
		{"CRLF", "[main c0dd4af] s\r\n 1 file changed, 1 insertion(+)\r\n create mode 100644 f\r\n",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s", files: number(1), insertions: number(1), created: []string{"f"}}},
		{"quoted path", "[main c0dd4af] s\n create mode 100644 \"caf\\303\\251 \\\"x\\\".txt\"\n create mode 100644 \"a",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s", created: []string{"café \"x\".txt", `"a`}}},
		{"two commits", "[main c0dd4af] one\n 1 file changed, 1 insertion(+)\n create mode 100644 f\n[main d1ccd8b] two\n",
			commitFacts{branch: "main", hash: "d1ccd8b", message: "two"}},
		{"other numbers before and after", " 9 files changed, 9 insertions(+)\n[main c0dd4af] s\n 1 file changed, 2 insertions(+)\n 7 files changed\n",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s", files: number(1), insertions: number(2)}},
		{"hooks talk", "[lint] passed\n[INFO] x\n10:00 ok\n[main c0dd4af] s\nTo github.com:a/b.git\n   c0dd4af..d1ccd8b  main -> main",
			commitFacts{branch: "main", hash: "c0dd4af", message: "s"}},
		{"only the end of it", " 1 file changed, 2 insertions(+)\n create mode 100644 f",
			commitFacts{files: number(1), insertions: number(2), created: []string{"f"}}},
		{"nothing", "", commitFacts{}},
		{"nothing to commit", "On branch main\nnothing to commit, working tree clean\n", commitFacts{}},
		{"no commit", "[x] y\n[a b] c\n[main zzzzzzz] s\n[ c0dd4af] s\n[two words c0dd4af] s\n[main c0dd4a] s\n" +
			"1 files\n-1 files changed\n1 file changed, oops\n99999999999999999999 files changed\ncreate mode 100644 \ncreate mode rwx f\ncreate mode x",
			commitFacts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := readCommit(c.stdout); !reflect.DeepEqual(got, c.want) {
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
	got := readCommit(out.String()).created
	if len(got) != maxNewFiles || got[0] != "f0" || got[49] != "f49" {
		t.Errorf("%d files: %v", len(got), got)
	}
}

func TestReadPush(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, output string
		want         pushFacts
	}{
		{"update", "To github.com:o/r.git\n   fe89275..54a7cb9  feat/x -> feat/x\n",
			pushFacts{"github.com:o/r.git", "fe89275..54a7cb9", "feat/x"}},
		{"new branch", "remote: \nremote: Create a pull request:\nremote:   https://x/y\nTo https://x/y.git\n * [new branch]      HEAD -> feat\nbranch 'feat' set up to track 'origin/feat'.\n",
			pushFacts{remote: "https://x/y.git", branch: "feat"}},
		{"new tag", "To x\n * [new tag]         v1 -> v1", pushFacts{remote: "x", branch: "v1"}},
		{"forced", "To ../r.git\n + 123a9dc...12e7e04 a -> b (forced update)\n", pushFacts{"../r.git", "123a9dc...12e7e04", "b"}},
		{"deleted", "To x\n - [deleted]         old\n", pushFacts{remote: "x", branch: "old"}},
		{"several refs", "To x\n ! [rejected]        a -> a (fetch first)\n = [up to date]      b -> b\n   1234567..89abcde  c -> c\n   1234567..89abcde  d -> d\n",
			pushFacts{"x", "1234567..89abcde", "c"}},
		{"several remotes", "To a\n ! [remote rejected] m -> m (hook (pre) declined)\nTo b\n   1234567..89abcde  m -> m\n",
			pushFacts{"b", "1234567..89abcde", "m"}},
		{"all rejected", "To x\n ! [rejected]        a -> a (non-fast-forward)\nerror: failed to push some refs to 'x'\n", pushFacts{remote: "x"}},
		{"full ref name", "To x\n   1234567..89abcde  HEAD -> refs/heads/m", pushFacts{"x", "1234567..89abcde", "m"}},
		{"review ref", "To x\n * [new reference]   HEAD -> refs/for/m", pushFacts{remote: "x", branch: "refs/for/m"}},
		{"path with spaces", "To /my repo\n   1234567..89abcde  m -> m", pushFacts{"/my repo", "1234567..89abcde", "m"}},
		{"progress and CRLF", "Counting objects: 50%\rCounting objects: 100%\rWriting objects: 100% (3/3), done.\r\nTo x\r\n   1234567..89abcde  m -> m\r\n",
			pushFacts{"x", "1234567..89abcde", "m"}},
		{"hooks talk", "[entire] Pushing session logs to origin...\nTo be continued\nTo x\n   1234567..89abcde  m -> m",
			pushFacts{"x", "1234567..89abcde", "m"}},
		{"a fetch after it", "To x\n * [new branch] a -> a\nFrom y\n   1234567..89abcde  m -> origin/m", pushFacts{remote: "x", branch: "a"}},
		{"a fetch alone", "From y\n   1234567..89abcde  m -> origin/m", pushFacts{}},
		{"a fetch after talk", "To be sure\nFrom y\n   1234567..89abcde  m -> origin/m", pushFacts{}},
		{"up to date", "Everything up-to-date\n", pushFacts{}},
		{"talk", "To fix this, run\n  git pull\n * x\n - y z w\n 123..456 a\n [oops\n", pushFacts{}},
		{"nothing", "", pushFacts{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := readPush(c.output); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func FuzzGitFacts(f *testing.F) {
	f.Add("[main (root-commit) c0dd4af] s\n 1 file changed, 1 insertion(+)\r\n create mode 100644 \"\\303\"\n")
	f.Add("To x\n + 123a9dc...12e7e04 a -> b (forced update)\n ! [rejected] a -> a\r - [deleted] z\n")
	f.Fuzz(func(t *testing.T, output string) {
		c := readCommit(output)
		if c.hash != "" && !isHash(c.hash) || c.branch != "" && c.hash == "" || strings.ContainsAny(c.branch+c.message, "\r\n") || len(c.created) > maxNewFiles {
			t.Fatalf("impossible commit %+v", c)
		}
		p := readPush(output)
		if p.hashRange != "" && !isHashRange(p.hashRange) || p.branch != "" && p.remote == "" || strings.ContainsAny(p.branch, " \r\n") {
			t.Fatalf("impossible push %+v", p)
		}
	})
}
