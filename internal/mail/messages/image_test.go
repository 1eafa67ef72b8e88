package messages

import (
	"strings"
	"testing"

	"cairn/internal/mail/mailtest"
)

func FuzzDimensionsOfAnything(f *testing.F) {
	for _, kind := range []string{"VP8 ", "VP8L", "VP8X", "XXXX"} {
		f.Add([]byte(mailtest.WebP(kind, 3, 4)))
	}
	f.Add([]byte(mailtest.PNG(f, 2, 3)))
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
