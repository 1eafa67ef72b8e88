package service

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/gif"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
)

func TestAttachmentsKeepTheirBytesTypeAndDimensions(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	var jpg, gifs bytes.Buffer
	if err := jpeg.Encode(&jpg, mailtest.Picture(7, 9), nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&gifs, mailtest.Picture(3, 2), nil); err != nil {
		t.Fatal(err)
	}
	files := []struct{ name, content, meta string }{
		{"a.png", mailtest.PNG(t, 5, 4), "inline image/png 5x4"},
		{"b.txt", jpg.String(), "inline image/jpeg 7x9"},
		{"c.gif", gifs.String(), "inline image/gif 3x2"},
		{"d.webp", mailtest.WebP("VP8 ", 300, 200), "inline image/webp 300x200"},
		{"e.webp", mailtest.WebP("VP8L", 16383, 1), "inline image/webp 16383x1"},
		{"f.webp", mailtest.WebP("VP8X", 70000, 2), "inline image/webp 70000x2"},
		{"forged.png", "\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDRxx", "inline image/png 0x0"},
		{"forged.webp", "RIFF\x00\x00\x00\x00WEBPVP8 ", "inline image/webp 0x0"},
		{"big.png", mailtest.PNG(t, 5, 4) + strings.Repeat("x", 64<<10), "file image/png 5x4"},
		{"note.png", "just text", "file text/plain; charset=utf-8 0x0"},
		{"empty", "", "file text/plain; charset=utf-8 0x0"},
		{"dir/x.pdf", "%PDF-1.7 x", "file application/pdf 0x0"},
	}
	var paths []string
	for _, f := range files {
		s.write(s.path("app", f.name), f.content)
		paths = append(paths, f.name)
	}
	out := mailtest.Must(s.send(messages.SendArgs{AttachmentPaths: paths, Body: "see ![x](data:image/png;base64,AAAA) ![y](data:image/svg+xml,abc) data:image/gif;x ](data:image/) ](data:text/plain;x)"}))(t)
	var all []map[string]any
	if err := json.Unmarshal(out.Attachments, &all); err != nil {
		t.Fatal(err)
	}
	mailtest.Want(t, "attachments", len(all), len(files)+2)
	for i, f := range files {
		var a mail.Attachment
		text, _ := json.Marshal(all[i])
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		mailtest.Want(t, f.name, fmt.Sprintf("%s %s %dx%d", a.Type, a.MediaType, a.Width, a.Height), f.meta)
		mailtest.Want(t, f.name, *a.Bytes, int64(len(f.content)))
		mailtest.Want(t, f.name, a.OriginalPath, f.name)
		if _, there := all[i]["width"]; there != !strings.HasSuffix(f.meta, " 0x0") {
			t.Errorf("%s: %v", f.name, all[i])
		}
		if data, err := base64.StdEncoding.DecodeString(a.Data); a.Type == "inline" && (string(data) != f.content || err != nil || a.Path != "") {
			t.Errorf("%s: %v", f.name, err)
		}
		var kept string
		s.query(&kept, "SELECT CAST(data AS TEXT) FROM mail_blobs WHERE sha1 = ?", a.SHA1)
		mailtest.Want(t, "bytes of "+f.name, kept == f.content, true)
		if a.Type == "file" && (!strings.HasPrefix(a.Path, "attachments/") || !strings.Contains(a.Path, a.SHA1) || a.Data != "") {
			t.Errorf("%s is at %s", f.name, a.Path)
		}
	}
	mailtest.Want(t, "in the body", mailtest.JSON(t, all[len(files):]), `[{"media_type":"image/png","type":"inline"},{"media_type":"image/svg+xml","type":"inline"}]`)
	mailtest.Want(t, "in the inbox", string(s.inboxOf("BlueDog")[0].Attachments), string(out.Attachments))
	_, written := s.rendered()
	for _, f := range files {
		found := false
		for path, content := range written {
			found = found || strings.HasPrefix(path, "attachments/") && content == f.content
		}
		mailtest.Want(t, f.name+" in the archive", found, true)
	}
}

func TestThePolicyOfTheSenderDecidesHowFilesAreAttached(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.write(s.path("app", "a.png"), mailtest.PNG(t, 5, 4))
	s.write(s.path("app", "a.txt"), "hello")
	for policy, types := range map[string]string{"inline": "inline inline", "file": "file file", "none": ""} {
		mailtest.Must(s.RegisterAgent(t.Context(), mail.Caller{}, agents.RegisterArgs{ProjectKey: s.app, Program: "claude-code", Model: "m1", Name: "GreenLake", AttachmentsPolicy: policy}))(t)
		out, err := s.send(messages.SendArgs{AttachmentPaths: []string{"a.png", "a.txt"}})
		if policy == "none" {
			wantError(t, policy, err, mail.CodeInvalid)
			continue
		}
		var all []mail.Attachment
		if err := json.Unmarshal(mailtest.Must(out, err)(t).Attachments, &all); err != nil {
			t.Fatal(err)
		}
		mailtest.Want(t, policy, all[0].Type+" "+all[1].Type, types)
	}
}

func symlink(t testing.TB, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Skip(err)
	}
}

func TestNothingOutsideTheProjectAndNothingOfGitsIsAttached(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	repo := s.repo("repo")
	s.register(repo, "GreenLake")
	s.register(repo, "BlueDog")
	data := s.mkdir(filepath.Join(repo, "data"))
	s.write(filepath.Join(data, "token"), "t")
	s.write(filepath.Join(repo, "in", "x.txt"), "x")
	s.write(s.path("secret.txt"), "secret")
	symlink(t, "in/x.txt", filepath.Join(repo, "good"))
	symlink(t, filepath.Join(repo, "in"), filepath.Join(repo, "in2"))
	symlink(t, "../repo/in/x.txt", filepath.Join(repo, "around"))
	symlink(t, "../secret.txt", filepath.Join(repo, "out"))
	symlink(t, s.dir, filepath.Join(repo, "up"))
	symlink(t, ".git", filepath.Join(repo, "history"))
	symlink(t, "data", filepath.Join(repo, "mine"))
	symlink(t, "loop", filepath.Join(repo, "loop"))
	y := s.with(mail.Config{DataFolder: data, MaxAttachment: 8, MaxAttachments: 12})
	s.write(filepath.Join(repo, "8.txt"), "12345678")
	s.write(filepath.Join(repo, "9.txt"), "123456789")
	send := func(paths ...string) error {
		_, err := y.SendMessage(t.Context(), mail.Caller{}, messages.SendArgs{ProjectKey: repo, SenderName: "GreenLake", To: []string{"BlueDog"}, AttachmentPaths: paths})
		return err
	}
	before := s.changes()
	for _, path := range []string{
		"", "../secret.txt", "in/../../secret.txt", s.path("secret.txt"), "out", "up/secret.txt", "around", "history/config", ".git/config", ".GIT/config",
		"in/../.git/HEAD", "data/token", "mine/token", repo + "/.git/config", "/etc/passwd",
	} {
		wantError(t, path, send(path), mail.CodePath, `"field":"attachment_paths"`)
	}
	for _, path := range []string{"in", "none.txt", "in/x.txt/y", "loop", ".", "in/none/x"} {
		wantError(t, path, send(path), mail.CodeInvalid, `"field":"attachment_paths"`)
	}
	wantError(t, "NUL", send("a\x00b"), mail.CodeInvalid)
	wantError(t, "too large", send("9.txt"), mail.CodeTooLarge, `"bytes":9`, `"max":8`)
	wantError(t, "too large together", send("8.txt", "8.txt"), mail.CodeTooLarge, `"bytes":16`, `"max":12`)
	wantError(t, "too many", send(make([]string, 201)...), mail.CodeInvalid)
	mailtest.Want(t, "changes", s.changes(), before)
	for _, path := range []string{"good", "in2/x.txt", "in/x.txt", filepath.Join(repo, "in", "x.txt"), "./in//x.txt", "8.txt"} {
		if err := send(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	y = s.with(mail.Config{DataFolder: data, AbsoluteAttachments: true})
	for _, path := range []string{s.path("secret.txt"), filepath.Join(repo, "good")} {
		if err := send(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{repo + "/.git/config", filepath.Join(data, "token"), filepath.Join(repo, "mine", "token"), "out"} {
		wantError(t, path, send(path), mail.CodePath)
	}
}

// TestAFileThatIsReplacedMeanwhileIsAttachedWholeOrNotAtAll replaces a file while messages are
// sent with it: it vanishes, becomes another file, or becomes a link out of the project.
func TestAFileThatIsReplacedMeanwhileIsAttachedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	s.write(s.path("secret.txt"), "secret")
	s.write(s.path("app", "x.txt"), "whole")
	file, aside := s.path("app", "x.txt"), s.path("app", "aside")
	symlink(t, "../secret.txt", s.path("app", "probe"))
	done, gone := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for i := 0; err == nil; i++ {
			select {
			case <-done:
				gone <- nil
				return
			default:
			}
			switch i % 9 {
			case 0:
				err = os.Remove(file)
			case 1:
				err = errors.Join(os.Symlink("../secret.txt", aside), os.Rename(aside, file))
			default:
				err = errors.Join(os.WriteFile(aside, []byte("whole"), 0o600), os.Rename(aside, file))
			}
		}
		gone <- err
	}()
	codes, sent := map[string]int{}, 0
	for i := 0; i < 200 || i < 20_000 && (sent == 0 || len(codes) == 0); i++ {
		before := s.changes()
		out, err := s.send(messages.SendArgs{AttachmentPaths: []string{"x.txt"}})
		if err == nil && !strings.Contains(string(out.Attachments), mail.SHA1([]byte("whole"))) {
			t.Errorf("attached %s", out.Attachments)
		}
		if err != nil {
			if codes[fault.As(err).Code]++; s.changes() != before {
				t.Error("something of a refused message was stored")
			}
			continue
		}
		sent++
	}
	close(done)
	if err := <-gone; err != nil {
		t.Error(err)
	}
	t.Logf("%d sent, %v", sent, codes)
	delete(codes, mail.CodeInvalid)
	delete(codes, mail.CodePath)
	if sent == 0 || len(codes) > 0 {
		t.Errorf("%d sent, refused otherwise: %v", sent, codes)
	}
}

func TestAWorktreeAttachesItsOwnFiles(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	repo := s.repo("repo")
	s.git(repo, "worktree", "add", "-q", s.path("tree"), "-b", "side")
	s.register(repo, "GreenLake")
	s.register(repo, "BlueDog")
	s.write(s.path("tree", "new.txt"), "of the worktree")
	for key, code := range map[string]string{s.path("tree"): "", repo: mail.CodeInvalid} {
		_, err := s.SendMessage(t.Context(), mail.Caller{}, messages.SendArgs{ProjectKey: key, SenderName: "GreenLake", To: []string{"BlueDog"}, AttachmentPaths: []string{"new.txt"}})
		if code == "" {
			mailtest.Must(0, err)(t)
		} else {
			wantError(t, key, err, code)
		}
	}
}
