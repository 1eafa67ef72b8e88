package disk

import (
	"fmt"
	"syscall"
)

// volumeOf calls statfs(2). The numbers are those of its manual page.
func volumeOf(path string) (Volume, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return Volume{}, err
	}
	v := Volume{Free: int64(st.Bavail) * int64(st.Bsize)}
	switch kind := uint32(st.Type); kind {
	case 0x6969:
		v.Kind, v.Network = "nfs", true
	case 0x517b, 0xff534d42, 0xfe534d42:
		v.Kind, v.Network = "smb", true
	case 0x01021997:
		v.Kind, v.Network = "9p", true
	case 0x5346414f, 0x6b414653:
		v.Kind, v.Network = "afs", true
	case 0x00c36400:
		v.Kind, v.Network = "ceph", true
	case 0x73757245:
		v.Kind, v.Network = "coda", true
	case 0x0bd00bd0:
		v.Kind, v.Network = "lustre", true
	case 0x65735546:
		v.Kind = "fuse" // local or remote is unknown
	case 0x01021994:
		v.Kind = "tmpfs"
	case 0xef53:
		v.Kind = "ext"
	case 0x9123683e:
		v.Kind = "btrfs"
	case 0x58465342:
		v.Kind = "xfs"
	default:
		v.Kind = fmt.Sprintf("%#x", kind)
	}
	return v, nil
}
