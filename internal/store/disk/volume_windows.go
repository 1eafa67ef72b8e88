package disk

import (
	"path/filepath"
	"syscall"
	"unsafe"
)

// driveRemote is the result of GetDriveTypeW for a disk of another machine.
const driveRemote = 4

func volumeOf(path string) (Volume, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Volume{}, err
	}
	root, err := syscall.UTF16PtrFromString(filepath.VolumeName(abs) + `\`)
	if err != nil {
		return Volume{}, err
	}
	kernel := syscall.NewLazyDLL("kernel32.dll")
	kind, _, _ := kernel.NewProc("GetDriveTypeW").Call(uintptr(unsafe.Pointer(root)))
	v := Volume{Network: kind == driveRemote}
	var free uint64
	ok, _, err := kernel.NewProc("GetDiskFreeSpaceExW").Call(uintptr(unsafe.Pointer(root)), uintptr(unsafe.Pointer(&free)), 0, 0)
	if ok == 0 {
		return v, err
	}
	v.Free = int64(free)
	return v, nil
}
