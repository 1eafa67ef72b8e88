package sqlitefile

import "encoding/binary"

// Sizes and marks of a write-ahead log.
const (
	logHeader   = 32
	frameHeader = 24
	logMagic    = 0x377f0682 // its last bit tells the byte order of the checksums
)

// readLog finds the newest committed frame of each page and returns the size of
// the database, in pages, after the last commit; 0 without a commit.
func (m *Image) readLog() (pages uint32) {
	head := make([]byte, logHeader)
	if !readFull(m.wal, head, 0) || binary.BigEndian.Uint32(head)&^1 != logMagic {
		return 0
	}
	size := pageSize(binary.BigEndian.Uint32(head[8:]))
	var order binary.ByteOrder = binary.LittleEndian
	if head[3]&1 == 1 {
		order = binary.BigEndian
	}
	sum := checksum{order: order}
	sum.add(head[:24])
	if size == 0 || !sum.is(head[24:]) {
		return 0
	}
	m.size = size
	open := map[uint32]int64{} // frames of a transaction whose commit has not come yet
	frame := make([]byte, frameHeader+size)
	for at := int64(logHeader); readFull(m.wal, frame, at); at += int64(len(frame)) {
		if string(frame[8:16]) != string(head[16:24]) { // the salts of an earlier log
			return pages
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeader:])
		n := binary.BigEndian.Uint32(frame)
		if n == 0 || !sum.is(frame[16:24]) {
			return pages
		}
		open[n] = at + frameHeader
		if commit := binary.BigEndian.Uint32(frame[4:]); commit > 0 {
			for n, at := range open {
				m.frames[n] = at
			}
			clear(open)
			pages = commit
		}
	}
	return pages
}

// checksum is the running sum over a log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
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
