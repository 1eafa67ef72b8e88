//go:build unix

package service

import (
	"os"
	"syscall"
	"testing"

	"cairn/internal/mail"
	"cairn/internal/mail/messages"
)

func TestAPipeIsNeverAttachedAndNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	s := newStreet(t, mail.Config{})
	if err := syscall.Mkfifo(s.path("app", "pipe"), 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink("pipe", s.path("app", "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pipe", "link", "pipe/x"} {
		_, err := s.send(messages.SendArgs{AttachmentPaths: []string{path}})
		wantError(t, path, err, mail.CodeInvalid, path)
	}
}
