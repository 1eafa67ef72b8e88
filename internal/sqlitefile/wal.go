package sqlitefile

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Sizes and magic numbers of a write-ahead log.
const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // its last bit is the byte order of the checksums
)

// readLog finds the newest committed frame of each page. It returns the size of the
// database in pages after the last commit, or 0 if there is no commit. It corrects single
// flipped bits where the checksums show which bit it was.
func (m *Image) readLog() (pages uint32) {
	head := make([]byte, logHeader)
	if !readFull(m.wal, head, 0) {
		return 0
	}
	corrected := 0 // since the last commit
	size, sum := logHead(head)
	if size == 0 {
		if size, sum = m.correctHead(head); size == 0 {
			return 0
		}
		corrected++
	}
	m.size = size
	open := map[uint32]int64{} // frames of a transaction without a commit so far
	frame := make([]byte, frameHeader+size)
	for at := int64(logHeader); readFull(m.wal, frame, at); at += int64(len(frame)) {
		salts := distance(frame[8:16], head[16:24])
		next := sum.plus(frame)
		isSound := salts == 0 && next.is(frame[16:24])
		if !isSound {
			if salts > 1 { // frames of an earlier log
				return pages
			}
			after := make([]byte, len(frame))
			if !readFull(m.wal, after, at+int64(len(frame))) || distance(after[8:16], head[16:24]) > 1 {
				after = nil
			}
			if next = sum.correct(frame, salts, after); next == (checksum{}) {
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

// logHead reads the header of a log. It returns the page size, 0 if the header is
// damaged, and the checksum that the first frame's checksum continues.
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

// correctHead corrects one flipped bit of a log's header so that the first frame
// verifies. size is 0 if no single bit achieves that.
func (m *Image) correctHead(head []byte) (size int, sum checksum) {
	for bit := range 8 * len(head) {
		head[bit/8] ^= 1 << (bit % 8)
		if size, sum = logHead(head); size > 0 {
			frame := make([]byte, frameHeader+size)
			next := checksum{}
			if readFull(m.wal, frame, logHeader) {
				next = sum.plus(frame)
			}
			if next.order != nil && distance(frame[8:16], head[16:24]) == 0 && next.is(frame[16:24]) {
				return size, sum
			}
		}
		head[bit/8] ^= 1 << (bit % 8)
	}
	return 0, sum
}

// distance returns how many bits differ.
func distance(a, b []byte) (n int) {
	for i := range a {
		n += bits.OnesCount8(a[i] ^ b[i])
	}
	return n
}

// maxCorrected is the size of the largest frame of which every bit is tried.
const maxCorrected = frameHeader + 1<<13

// checksum is the running sum over a log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

// plus returns the checksum after one more frame.
func (c checksum) plus(frame []byte) checksum {
	c.add(frame[:8])
	c.add(frame[frameHeader:])
	return c
}

// maxPages is a limit that the page number in an undamaged log frame does not reach.
const maxPages = 1 << 24

// correct corrects one flipped bit of a frame. It returns the checksum after the frame,
// or the zero value if more than one bit is wrong. SQLite's checksums do not always show
// which bit it was; then the frame stays unchanged. after is the next frame, or nil at
// the end.
func (c checksum) correct(frame []byte, salts int, after []byte) checksum {
	computed, stored := c.plus(frame), checksum{order: c.order}
	stored.s0, stored.s1 = binary.BigEndian.Uint32(frame[16:]), binary.BigEndian.Uint32(frame[20:])
	wrong := bits.OnesCount32(computed.s0^stored.s0) + bits.OnesCount32(computed.s1^stored.s1)
	continues := func(from checksum) bool {
		next := from.plus(after)
		return next.is(after[16:24])
	}
	switch {
	case salts > 0 && wrong == 0: // a salt
		return computed
	case salts > 0 || len(frame) > maxCorrected:
		return checksum{}
	case wrong == 1 && (after == nil || continues(computed)): // the checksum
		return computed
	case after != nil && !continues(stored):
		return checksum{}
	}
	if !c.flipBack(frame) {
		return checksum{}
	}
	return stored
}

// flipBack flips the one bit of a frame that makes its checksum right, and reports
// whether there is such a bit. If two bits fit, it takes the one that makes the page
// number or the database size plausible.
func (c checksum) flipBack(frame []byte) bool {
	plausible := func() bool {
		return max(binary.BigEndian.Uint32(frame), binary.BigEndian.Uint32(frame[4:])) < maxPages
	}
	found, at := 0, 0
	for bit := range 8 * len(frame) {
		if i := bit / 8; i >= 8 && i < frameHeader {
			continue
		}
		frame[bit/8] ^= 1 << (bit % 8)
		if next := c.plus(frame); next.is(frame[16:24]) {
			found++
			if found == 1 || bit < 64 && plausible() {
				at = bit
			}
		}
		frame[bit/8] ^= 1 << (bit % 8)
	}
	if found == 0 || !plausible() && at >= 64 {
		return false
	}
	if found == 1 || !plausible() {
		frame[at/8] ^= 1 << (at % 8)
	}
	return true
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
