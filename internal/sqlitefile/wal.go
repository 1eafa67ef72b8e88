package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Sizes and marks of a write-ahead log.
const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // its last bit tells the byte order of the checksums
)

// readLog finds the newest committed frame of each page and returns the size of
// the database, in pages, after the last commit; 0 without a commit. It corrects
// single flipped bits, of which the checksums show which one it was.
func (m *Image) readLog() (pages uint32) {
	head := make([]byte, logHeader)
	if !readFull(m.wal, head, 0) {
		return 0
	}
	corrected := 0 // since the last commit
	size, sum := logHead(head)
	if size == 0 {
		if size, sum = correctHead(head); size == 0 {
			return 0
		}
		corrected++
	}
	m.size = size
	open := map[uint32]int64{} // frames of a transaction whose commit has not come yet
	frame := make([]byte, frameHeader+size)
	for at := int64(logHeader); readFull(m.wal, frame, at); at += int64(len(frame)) {
		salts := distance(frame[8:16], head[16:24])
		next := sum.plus(frame)
		isSound := salts == 0 && next.is(frame[16:24])
		if !isSound {
			if salts > 1 { // those of an earlier log
				return pages
			}
			if next = sum.correct(frame, salts); next == (checksum{}) {
				return pages
			}
			m.patched[at+frameHeader] = bytes.Clone(frame[frameHeader:])
			corrected++
		}
		n := binary.BigEndian.Uint32(frame)
		if n == 0 {
			return pages
		}
		sum = next
		open[n] = at + frameHeader
		if commit := binary.BigEndian.Uint32(frame[4:]); commit > 0 {
			for n, at := range open {
				m.frames[n] = at
			}
			clear(open)
			pages = commit
			m.Head.LogCorrected += corrected
			corrected = 0
		}
	}
	return pages
}

// logHead reads the header of a log: the size of a page, 0 if the header is damaged, and
// the checksum with which that of the first frame begins.
func logHead(head []byte) (size int, sum checksum) {
	if binary.BigEndian.Uint32(head)&^1 != logMagic {
		return 0, sum
	}
	sum.order = binary.LittleEndian
	if head[3]&1 == 1 {
		sum.order = binary.BigEndian
	}
	sum.add(head[:24])
	if !sum.is(head[24:]) {
		return 0, sum
	}
	return pageSize(binary.BigEndian.Uint32(head[8:])), sum
}

// correctHead corrects one flipped bit of a log's header; size 0 if it is not one.
func correctHead(head []byte) (size int, sum checksum) {
	for bit := range 8 * len(head) {
		head[bit/8] ^= 1 << (bit % 8)
		if size, sum = logHead(head); size > 0 {
			return size, sum
		}
		head[bit/8] ^= 1 << (bit % 8)
	}
	return 0, sum
}

// distance is how many bits differ.
func distance(a, b []byte) (n int) {
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// checksum is the running sum over a log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

// plus is the sum after one more frame.
func (c checksum) plus(frame []byte) checksum {
	c.add(frame[:8])
	c.add(frame[frameHeader:])
	return c
}

// correct corrects one flipped bit of a frame, of which salts are in the salts, and
// returns the sum after it; the zero value if more than one bit is wrong.
func (c checksum) correct(frame []byte, salts int) checksum {
	stored := make([]byte, 8)
	next := c.plus(frame)
	binary.BigEndian.PutUint32(stored, next.s0)
	binary.BigEndian.PutUint32(stored[4:], next.s1)
	if wrong := distance(stored, frame[16:24]); wrong+salts == 1 {
		return next
	}
	if salts > 0 {
		return checksum{}
	}
	for i := range frame {
		if i >= 8 && i < frameHeader {
			continue
		}
		for bit := range 8 {
			frame[i] ^= 1 << bit
			if next := c.plus(frame); next.is(frame[16:24]) {
				return next
			}
			frame[i] ^= 1 << bit
		}
	}
	return checksum{}
}

func (c *checksum) add(b []byte) {
	for i := 0; i+8 <= len(b); i += 8 {
		c.s0 += c.order.Uint32(b[i:]) + c.s1
		c.s1 += c.order.Uint32(b[i+4:]) + c.s0
	}
}

func (c *checksum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == c.s0 && binary.BigEndian.Uint32(b[4:]) == c.s1
}
