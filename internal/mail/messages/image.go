package messages

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// dimensions returns the width and height in pixels from the header of an image; 0 and 0 if
// the header is missing or invalid.
func dimensions(media string, data []byte) (width, height int) {
	var c image.Config
	var err error
	switch media {
	case "image/png":
		c, err = png.DecodeConfig(bytes.NewReader(data))
	case "image/jpeg":
		c, err = jpeg.DecodeConfig(bytes.NewReader(data))
	case "image/gif":
		c, err = gif.DecodeConfig(bytes.NewReader(data))
	case "image/webp":
		c.Width, c.Height = webpSize(data)
	}
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return 0, 0
	}
	return c.Width, c.Height
}

// webpSize reads the first chunk of a WebP file, which is one of three kinds.
func webpSize(data []byte) (width, height int) {
	if len(data) < 30 || string(data[:4]) != "RIFF" || string(data[8:12]) != "WEBP" {
		return 0, 0
	}
	chunk := data[20:]
	switch string(data[12:16]) {
	case "VP8 ": // three bytes of frame tag, a start code, 14 bits each
		if chunk[3] == 0x9d && chunk[4] == 0x01 && chunk[5] == 0x2a {
			return int(binary.LittleEndian.Uint16(chunk[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(chunk[8:]) & 0x3fff)
		}
	case "VP8L": // a signature, then 14 bits each, minus one
		if chunk[0] == 0x2f {
			bits := binary.LittleEndian.Uint32(chunk[1:])
			return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1
		}
	case "VP8X": // flags, then 24 bits each, minus one
		size := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
		return size(chunk[4:]) + 1, size(chunk[7:]) + 1
	}
	return 0, 0
}
