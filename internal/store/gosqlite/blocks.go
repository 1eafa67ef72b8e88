package gosqlite

import (
	"encoding/binary"
	"io"

	"lukechampine.com/adiantum"
	"lukechampine.com/adiantum/hbsh"
)

// blocks encrypts and decrypts blocks of a file without SQLite.
type blocks struct {
	cipher *hbsh.HBSH
	tweak  [tweakSize]byte
}

func (b *blocks) decrypt(block []byte, at int64) []byte {
	binary.LittleEndian.PutUint64(b.tweak[:], uint64(at))
	return b.cipher.Decrypt(block, b.tweak[:])
}

func (b *blocks) encrypt(block []byte, at int64) []byte {
	binary.LittleEndian.PutUint64(b.tweak[:], uint64(at))
	return b.cipher.Encrypt(block, b.tweak[:])
}

// Reader reads an encrypted database or write-ahead log. A damaged block decrypts to
// noise, all of it; a truncated block cannot be read. It must be used by one goroutine.
type Reader struct {
	blocks
	file  io.ReaderAt
	block [BlockSize]byte
}

// NewReader reads a file with a key of KeySize bytes.
func NewReader(file io.ReaderAt, key []byte) *Reader {
	return &Reader{blocks: blocks{cipher: adiantum.New(key)}, file: file}
}

// Whole returns how many bytes of a file of the given size are in complete blocks.
func Whole(size int64) int64 { return size / BlockSize * BlockSize }

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := Whole(off + int64(n))
		m, err := r.file.ReadAt(r.block[:], at)
		if m < BlockSize {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
		n += copy(p[n:], r.decrypt(r.block[:], at)[off+int64(n)-at:])
	}
	return n, nil
}

// Writer encrypts data and writes it from the beginning of a file.
type Writer struct {
	blocks
	file  io.Writer
	block [BlockSize]byte
	full  int   // bytes of block
	at    int64 // offset of block
}

// NewWriter writes a file with a key of KeySize bytes.
func NewWriter(file io.Writer, key []byte) *Writer {
	return &Writer{blocks: blocks{cipher: adiantum.New(key)}, file: file}
}

// Write implements io.Writer. The last bytes are written to the file by Close.
func (w *Writer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		m := copy(w.block[w.full:], p[n:])
		n, w.full = n+m, w.full+m
		if w.full == BlockSize {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

func (w *Writer) flush() error {
	_, err := w.file.Write(w.encrypt(w.block[:], w.at))
	w.at, w.full = w.at+BlockSize, 0
	return err
}

// Close fills the last block with zeros and writes it. The file stays open.
func (w *Writer) Close() error {
	if w.full == 0 {
		return nil
	}
	clear(w.block[w.full:])
	return w.flush()
}
