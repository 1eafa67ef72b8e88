package disk

import "syscall"

// mountedLocally is MNT_LOCAL of statfs(2).
const mountedLocally = 0x1000

func volumeOf(path string) (Volume, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return Volume{}, err
	}
	v := Volume{Free: int64(st.Bavail) * int64(st.Bsize), Network: st.Flags&mountedLocally == 0}
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		v.Kind += string(rune(byte(c)))
	}
	return v, nil
}
