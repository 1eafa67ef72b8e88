package mail

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cairn/internal/fault"
)

func picture(w, h int) image.Image {
	return image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
}

func pngOf(t testing.TB, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, picture(w, h)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// webp is the beginning of a WebP file of one of its three kinds.
func webp(kind string, w, h int) string {
	b := append([]byte("RIFF\x00\x00\x00\x00WEBP"+kind), 10, 0, 0, 0)
	switch kind {
	case "VP8 ":
		b = append(b, 0, 0, 0, 0x9d, 0x01, 0x2a)
		b = binary.LittleEndian.AppendUint16(b, uint16(w))
		b = binary.LittleEndian.AppendUint16(b, uint16(h))
	case "VP8L":
		b = append(b, 0x2f)
		b = binary.LittleEndian.AppendUint32(b, uint32(w-1)|uint32(h-1)<<14)
	case "VP8X":
		b = append(b, 0, 0, 0, 0, byte(w-1), byte((w-1)>>8), byte((w-1)>>16), byte(h-1), byte((h-1)>>8), byte((h-1)>>16))
	}
	return string(append(b, make([]byte, 8)...))
}

func TestAttachmentsKeepTheirBytesTypeAndDimensions(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	var jpg, gifs bytes.Buffer
	if err := jpeg.Encode(&jpg, picture(7, 9), nil); err != nil {
		t.Fatal(err)
	}
	if err := gif.Encode(&gifs, picture(3, 2), nil); err != nil {
		t.Fatal(err)
	}
	files := []struct{ name, content, meta string }{
		{"a.png", pngOf(t, 5, 4), "inline image/png 5x4"},
		{"b.txt", jpg.String(), "inline image/jpeg 7x9"},
		{"c.gif", gifs.String(), "inline image/gif 3x2"},
		{"d.webp", webp("VP8 ", 300, 200), "inline image/webp 300x200"},
		{"e.webp", webp("VP8L", 16383, 1), "inline image/webp 16383x1"},
		{"f.webp", webp("VP8X", 70000, 2), "inline image/webp 70000x2"},
		{"forged.png", "\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDRxx", "inline image/png 0x0"},
		{"forged.webp", "RIFF\x00\x00\x00\x00WEBPVP8 ", "inline image/webp 0x0"},
		{"big.png", pngOf(t, 5, 4) + strings.Repeat("x", 64<<10), "file image/png 5x4"},
		{"note.png", "just text", "file text/plain; charset=utf-8 0x0"},
		{"empty", "", "file text/plain; charset=utf-8 0x0"},
		{"dir/x.pdf", "%PDF-1.7 x", "file application/pdf 0x0"},
	}
	var paths []string
	for _, f := range files {
		s.write(s.path("app", f.name), f.content)
		paths = append(paths, f.name)
	}
	out := must(s.send(SendArgs{AttachmentPaths: paths, Body: "see ![x](data:image/png;base64,AAAA) ![y](data:image/svg+xml,abc) data:image/gif;x ](data:image/) ](data:text/plain;x)"}))(t)
	var all []map[string]any
	if err := json.Unmarshal(out.Attachments, &all); err != nil {
		t.Fatal(err)
	}
	want(t, "attachments", len(all), len(files)+2)
	for i, f := range files {
		var a Attachment
		text, _ := json.Marshal(all[i])
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		want(t, f.name, fmt.Sprintf("%s %s %dx%d", a.Type, a.MediaType, a.Width, a.Height), f.meta)
		want(t, f.name, *a.Bytes, int64(len(f.content)))
		want(t, f.name, a.OriginalPath, f.name)
		if _, there := all[i]["width"]; there != !strings.HasSuffix(f.meta, " 0x0") {
			t.Errorf("%s: %v", f.name, all[i])
		}
		if data, err := base64.StdEncoding.DecodeString(a.Data); a.Type == "inline" && (string(data) != f.content || err != nil || a.Path != "") {
			t.Errorf("%s: %v", f.name, err)
		}
		var kept string
		s.query(&kept, "SELECT CAST(data AS TEXT) FROM mail_blobs WHERE sha1 = ?", a.SHA1)
		want(t, "bytes of "+f.name, kept == f.content, true)
		if a.Type == "file" && (!strings.HasPrefix(a.Path, "attachments/") || !strings.Contains(a.Path, a.SHA1) || a.Data != "") {
			t.Errorf("%s is at %s", f.name, a.Path)
		}
	}
	want(t, "in the body", jsonText(t, all[len(files):]), `[{"media_type":"image/png","type":"inline"},{"media_type":"image/svg+xml","type":"inline"}]`)
	want(t, "in the inbox", string(s.inboxOf("BlueDog")[0].Attachments), string(out.Attachments))
	pages, written := rendered(t, s.store)
	want(t, "refused", len(pages.Refused), 0)
	for _, f := range files {
		found := false
		for path, content := range written {
			found = found || strings.HasPrefix(path, "attachments/") && content == f.content
		}
		want(t, f.name+" in the archive", found, true)
	}
}

func TestThePolicyOfTheSenderDecidesHowFilesAreAttached(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	s.write(s.path("app", "a.png"), pngOf(t, 5, 4))
	s.write(s.path("app", "a.txt"), "hello")
	for policy, types := range map[string]string{"inline": "inline inline", "file": "file file", "none": ""} {
		must(s.RegisterAgent(t.Context(), Caller{}, RegisterArgs{ProjectKey: s.app, Program: "claude-code", Model: "m1", Name: "GreenLake", AttachmentsPolicy: policy}))(t)
		out, err := s.send(SendArgs{AttachmentPaths: []string{"a.png", "a.txt"}})
		if policy == "none" {
			wantError(t, policy, err, CodeInvalid)
			continue
		}
		var all []Attachment
		if err := json.Unmarshal(must(out, err)(t).Attachments, &all); err != nil {
			t.Fatal(err)
		}
		want(t, policy, all[0].Type+" "+all[1].Type, types)
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
	s := newStreet(t, Config{})
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
	y := s.with(Config{DataFolder: data, MaxAttachment: 8, MaxAttachments: 12})
	s.write(filepath.Join(repo, "8.txt"), "12345678")
	s.write(filepath.Join(repo, "9.txt"), "123456789")
	send := func(paths ...string) error {
		_, err := y.SendMessage(t.Context(), Caller{}, SendArgs{ProjectKey: repo, SenderName: "GreenLake", To: []string{"BlueDog"}, AttachmentPaths: paths})
		return err
	}
	before := s.changes()
	for _, path := range []string{
		"", "../secret.txt", "in/../../secret.txt", s.path("secret.txt"), "out", "up/secret.txt", "around", "history/config", ".git/config", ".GIT/config",
		"in/../.git/HEAD", "data/token", "mine/token", repo + "/.git/config", "/etc/passwd",
	} {
		wantError(t, path, send(path), CodePath, `"field":"attachment_paths"`)
	}
	for _, path := range []string{"in", "none.txt", "in/x.txt/y", "loop", ".", "in/none/x"} {
		wantError(t, path, send(path), CodeInvalid, `"field":"attachment_paths"`)
	}
	wantError(t, "NUL", send("a\x00b"), CodeInvalid)
	wantError(t, "too large", send("9.txt"), CodeTooLarge, `"bytes":9`, `"max":8`)
	wantError(t, "too large together", send("8.txt", "8.txt"), CodeTooLarge, `"bytes":16`, `"max":12`)
	wantError(t, "too many", send(make([]string, 201)...), CodeInvalid)
	want(t, "changes", s.changes(), before)
	for _, path := range []string{"good", "in2/x.txt", "in/x.txt", filepath.Join(repo, "in", "x.txt"), "./in//x.txt", "8.txt"} {
		if err := send(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	y = s.with(Config{DataFolder: data, AbsoluteAttachments: true})
	for _, path := range []string{s.path("secret.txt"), filepath.Join(repo, "good")} {
		if err := send(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{repo + "/.git/config", filepath.Join(data, "token"), filepath.Join(repo, "mine", "token"), "out"} {
		wantError(t, path, send(path), CodePath)
	}
}

// TestAFileThatIsReplacedMeanwhileIsAttachedWholeOrNotAtAll: it vanishes, is another
// file, or is a link out of the project while messages are sent with it.
func TestAFileThatIsReplacedMeanwhileIsAttachedWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
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
		out, err := s.send(SendArgs{AttachmentPaths: []string{"x.txt"}})
		if err == nil && !strings.Contains(string(out.Attachments), sha1Of([]byte("whole"))) {
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
	delete(codes, CodeInvalid)
	delete(codes, CodePath)
	if sent == 0 || len(codes) > 0 {
		t.Errorf("%d sent, refused otherwise: %v", sent, codes)
	}
}

func TestAWorktreeAttachesItsOwnFiles(t *testing.T) {
	t.Parallel()
	s := newStreet(t, Config{})
	repo := s.repo("repo")
	s.git(repo, "worktree", "add", "-q", s.path("tree"), "-b", "side")
	s.register(repo, "GreenLake")
	s.register(repo, "BlueDog")
	s.write(s.path("tree", "new.txt"), "of the worktree")
	for key, code := range map[string]string{s.path("tree"): "", repo: CodeInvalid} {
		_, err := s.SendMessage(t.Context(), Caller{}, SendArgs{ProjectKey: key, SenderName: "GreenLake", To: []string{"BlueDog"}, AttachmentPaths: []string{"new.txt"}})
		if code == "" {
			must(0, err)(t)
		} else {
			wantError(t, key, err, code)
		}
	}
}

func FuzzDimensionsOfAnything(f *testing.F) {
	for _, kind := range []string{"VP8 ", "VP8L", "VP8X", "XXXX"} {
		f.Add([]byte(webp(kind, 3, 4)))
	}
	f.Add([]byte(pngOf(f, 2, 3)))
	f.Add([]byte("GIF89a\x01\x00\x02\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, media := range []string{"image/png", "image/jpeg", "image/gif", "image/webp", "text/plain"} {
			if w, h := dimensions(media, data); w < 0 || h < 0 || (w == 0) != (h == 0) || media == "text/plain" && w > 0 {
				t.Errorf("%s: %d x %d", media, w, h)
			}
		}
		for _, media := range embedded(string(data)) {
			if !strings.HasPrefix(media, "image/") || len(media) > maxMediaType+6 || strings.ContainsAny(media, " \n;,)") {
				t.Errorf("%q", media)
			}
		}
	})
}
