package mail

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
)

// The paths of the archive (mail §10.1). Folders stay small: from the 1,000th entry on, files
// are in the subfolders 001, 002, ….

const PerFolder = 1000

// BucketDir returns the subfolder for the entry with an ordinal, counted from 1: "" for the
// first 999, then 001/ and so on.
func BucketDir(ordinal int64) string {
	if n := ordinal / PerFolder; n > 0 {
		return fmt.Sprintf("%03d/", n)
	}
	return ""
}

const maxSubjectName = 80

// MessageFile returns the name of a message's files.
func MessageFile(created Time, subject string, id int64) string {
	return created.UTC().Format("2006-01-02T15-04-05Z") + "__" + fileWord(subject) + "__" + fmt.Sprint(id) + ".md"
}

// fileWord returns a subject as part of a file name.
func fileWord(text string) string {
	var b strings.Builder
	dash := false
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-' {
			if dash && b.Len() > 0 {
				b.WriteByte('-')
			}
			dash = false
			b.WriteRune(r)
		} else {
			dash = true
		}
		if b.Len() >= maxSubjectName {
			break
		}
	}
	word := strings.Trim(Clip(b.String(), maxSubjectName), "-._")
	if word == "" {
		return "message"
	}
	return word
}

// Month returns the folder YYYY/MM of a time.
func Month(at Time) string { return at.UTC().Format("2006/01") }

// StatePath returns the path of the file with a message's state at one recipient.
func StatePath(agent string, created Time, id, ordinal int64) string {
	return "agents/" + agent + "/state/" + Month(created) + "/" + BucketDir(ordinal) + fmt.Sprint(id) + ".json"
}

// CopyPath returns the path of a message's copy in an agent's box: inbox or outbox.
func CopyPath(agent, box, canonical string) string {
	return "agents/" + agent + "/" + box + strings.TrimPrefix(canonical, "messages")
}

// MessagePath returns the path of a message's canonical file.
func MessagePath(created Time, subject string, id, ordinal int64) string {
	return "messages/" + Month(created) + "/" + BucketDir(ordinal) + MessageFile(created, subject, id)
}

// isDevice reports whether Windows treats a name as a device. Text after the first dot is
// ignored.
func isDevice(name string) bool {
	word, _, _ := strings.Cut(strings.ToLower(name), ".")
	switch word {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(word) == 4 && (strings.HasPrefix(word, "com") || strings.HasPrefix(word, "lpt")) && word[3] >= '0' && word[3] <= '9'
}

// digestPath returns the path of a thread's digest. other is set if the plain path belongs to
// a thread whose id differs only in case.
func digestPath(thread string, ordinal int64, other bool) string {
	name := thread
	if other || isDevice(thread) || strings.HasSuffix(thread, ".") {
		sum := sha1.Sum([]byte(thread))
		name += "~" + hex.EncodeToString(sum[:])[:8]
	}
	return "messages/threads/" + BucketDir(ordinal) + name + ".md"
}

// SHA1 returns the hexadecimal SHA-1 of data, its name in the store.
func SHA1(data []byte) string {
	sum := sha1.Sum(data)
	return hex.EncodeToString(sum[:])
}

// ReservationPath returns the path of a reservation's file.
func ReservationPath(id, ordinal int64) string {
	return "file_reservations/" + BucketDir(ordinal) + fmt.Sprintf("id-%d.json", id)
}

// Path returns the path of an attachment's bytes. Images are in a folder named after the
// beginning of their hash, other files are below attachments/files.
func (b *Blob) Path(mediaType string) string {
	ext, image := map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}[mediaType]
	if image {
		return "attachments/" + b.SHA1[:2] + "/" + b.SHA1 + "." + ext
	}
	return "attachments/files/" + b.SHA1[:2] + "/" + b.SHA1 + ".bin"
}
