package mailtest

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// Picture returns an image in two colours.
func Picture(w, h int) image.Image {
	return image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Black, color.White})
}

// PNG returns a picture as a file.
func PNG(t testing.TB, w, h int) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, Picture(w, h)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// WebP returns the beginning of a WebP file of one of its three kinds.
func WebP(kind string, w, h int) string {
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
